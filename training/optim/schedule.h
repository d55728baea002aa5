// Learning-rate schedules: pure functions of the step, with the semantics of Hugging Face's get_scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

enum class ScheduleKind : std::uint8_t {
  constant,              // peak after the warm-up (what LRScheduler::linear of the eager API is)
  linear,                // falls to the end at total_steps, as Hugging Face's get_linear_schedule_with_warmup
  cosine,                // half a period
  polynomial,            // (1 - progress)^power
  cosine_with_restarts,  // `cycles` halves of a period, each from the peak
  wsd,                   // warm-up, stable, decay: the peak until the last steps, then half a cosine
};

/// Finds a kind by its name. Throws ValueError listing the names.
ScheduleKind parse_schedule(std::string_view name);
std::string_view name(ScheduleKind kind);
/// Lists all names.
std::vector<std::string> schedule_names();

/// Numbers that only some schedules have.
struct ScheduleShape {
  double power = 1;         ///< of polynomial
  std::int64_t cycles = 1;  ///< of cosine_with_restarts
  double decay = 0.2;       ///< of wsd: the share of all steps in which the rate falls, in (0, 1]
  double end = 0;           ///< of all but constant: the last rate, as a share of the peak, in [0, 1]
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double peak = 1e-4;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  ScheduleShape shape{};

  /// The rate of the update number `step`, from 0. With a warm-up of W > 0 steps it is peak * step / W below
  /// W: the first update has rate 0, as in Hugging Face's trainer. peak * shape.end at and after total_steps
  /// for all but constant.
  double learning_rate(std::int64_t step) const;
  /// Throws ValueError for numbers out of their domains.
  void validate() const;

 private:
  /// From 1 to 0 between the warm-up and the last step.
  double height(std::int64_t step) const;
};

}  // namespace caldera
