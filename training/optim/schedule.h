// Learning-rate schedules: pure functions of the step, with the semantics of Hugging Face's get_scheduler.
#pragma once

#include <cstdint>
#include <string_view>

namespace caldera {

enum class ScheduleKind : std::uint8_t {
  constant,  // peak after the warm-up (what LRScheduler::linear of the eager API is)
  linear,    // falls to 0 at total_steps, as Hugging Face's get_linear_schedule_with_warmup
  cosine,    // half a period: peak * (1 + cos(pi * progress)) / 2
};

/// "constant", "linear" or "cosine". Throws ValueError listing them.
ScheduleKind parse_schedule(std::string_view name);
std::string_view name(ScheduleKind kind);

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double peak = 1e-4;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;

  /// The rate of the update number `step`, from 0. With a warm-up of W > 0 steps it is peak * step / W below
  /// W: the first update has rate 0, as in Hugging Face's trainer. 0 at and after total_steps for linear and
  /// cosine.
  double learning_rate(std::int64_t step) const;
  /// Throws ValueError for negative numbers.
  void validate() const;
};

}  // namespace caldera
