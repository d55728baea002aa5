// Learning rates as functions of the step, for loops of one's own, with the numbers of
// torch.optim.lr_scheduler. Those of the trainer: schedule.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <vector>

namespace caldera {

/// A rate for each step, counted from 0.
template <class S>
concept LearningRateSchedule = requires(const S& schedule, std::int64_t step) {
  { schedule.learning_rate(step) } -> std::convertible_to<double>;
};

/// Times `gamma` every `step_size` steps (StepLR). All throw ValueError for numbers out of their domains.
class StepRate {
 public:
  StepRate(double rate, std::int64_t step_size, double gamma = 0.1);
  double learning_rate(std::int64_t step) const;

 private:
  double rate_, gamma_;
  std::int64_t step_size_;
};

/// Times `gamma` at each of the milestones (MultiStepLR).
class MultiStepRate {
 public:
  MultiStepRate(double rate, std::vector<std::int64_t> milestones, double gamma = 0.1);
  double learning_rate(std::int64_t step) const;

 private:
  double rate_, gamma_;
  std::vector<std::int64_t> milestones_;
};

/// Times `gamma` every step (ExponentialLR).
class ExponentialRate {
 public:
  ExponentialRate(double rate, double gamma);
  double learning_rate(std::int64_t step) const;

 private:
  double rate_, gamma_;
};

struct OneCycleOptions {
  double rising = 0.3;       ///< the share of all steps in which the rate rises
  double first_factor = 25;  ///< the first rate is the peak over this
  double last_factor = 1e4;  ///< the last rate is the first over this
};
/// Rises to a peak and falls far below, each by half a cosine (OneCycleLR; Smith and Topin 2017).
class OneCycleRate {
 public:
  OneCycleRate(double peak, std::int64_t total_steps, OneCycleOptions options = {});
  double learning_rate(std::int64_t step) const;

 private:
  double peak_;
  std::int64_t total_;
  OneCycleOptions options_;
};

struct PlateauOptions {
  double factor = 0.1;
  std::int64_t patience = 10;  ///< values in a row that are no better, before the rate falls with the next
  double threshold = 1e-4;     ///< a better value is below (1 - threshold) times the best
  std::int64_t cooldown = 0;   ///< values after a fall that do not count
  double least = 0;
};
/// Falls where a value no longer does (ReduceLROnPlateau in its mode "min", relative).
class PlateauRate {
 public:
  explicit PlateauRate(double rate, PlateauOptions options = {});
  /// Takes a validation loss. Returns the rate from now on.
  double observe(double value);
  double learning_rate() const { return rate_; }

 private:
  double rate_;
  PlateauOptions options_;
  double best_ = std::numeric_limits<double>::infinity();
  std::int64_t misses_ = 0, cooling_ = 0;
};

}  // namespace caldera
