// Learning rates as functions of the step.
#pragma once

#include <cstdint>

namespace caldera::v1 {

/// A schedule: a value, without state. Steps count from 0; a negative step is taken for 0.
class LRScheduler {
 public:
  enum class Kind : std::uint8_t { Constant, Linear, Cosine, WarmupCosine };

  // Each throws TrainingError (InvalidConfig) for a rate that is negative or not finite, a min_lr above
  // max_lr, and step numbers out of order.

  /// lr at every step.
  static LRScheduler constant(double lr);
  /// From 0 to max_lr over warmup_steps, then max_lr.
  static LRScheduler linear(std::int64_t warmup_steps, double max_lr);
  /// Half a cosine from max_lr to min_lr over total_steps, then min_lr.
  static LRScheduler cosine(std::int64_t total_steps, double max_lr, double min_lr);
  /// From 0 to max_lr over warmup_steps, then half a cosine to min_lr at total_steps, then min_lr.
  static LRScheduler warmup_cosine(std::int64_t warmup_steps, std::int64_t total_steps, double max_lr,
                                   double min_lr);

  double get_lr(std::int64_t step) const;
  Kind kind() const { return kind_; }

 private:
  LRScheduler(Kind kind, std::int64_t warmup_steps, std::int64_t total_steps, double max_lr, double min_lr);

  Kind kind_;
  std::int64_t warmup_steps_;
  std::int64_t total_steps_;
  double max_lr_;
  double min_lr_;
};

}  // namespace caldera::v1
