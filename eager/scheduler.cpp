#include "eager/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "eager/errors.h"

namespace caldera::v1 {

LRScheduler::LRScheduler(Kind kind, std::int64_t warmup_steps, std::int64_t total_steps, double max_lr,
                         double min_lr)
    : kind_(kind), warmup_steps_(warmup_steps), total_steps_(total_steps), max_lr_(max_lr), min_lr_(min_lr) {
  // Written so that NaN is refused too.
  if (!(max_lr >= 0 && std::isfinite(max_lr)))
    throw TrainingError::invalid_config(
        fmt::format("the learning rate is {}, want it finite and not negative", max_lr));
  if (!(min_lr >= 0 && min_lr <= max_lr))
    throw TrainingError::invalid_config(
        fmt::format("min_lr is {}, want it between 0 and max_lr = {}", min_lr, max_lr));
}

LRScheduler LRScheduler::constant(double lr) { return {Kind::Constant, 0, 0, lr, 0}; }

LRScheduler LRScheduler::linear(std::int64_t warmup_steps, double max_lr) {
  if (warmup_steps < 1)
    throw TrainingError::invalid_config(
        fmt::format("warmup_steps is {}, want it positive (or use a constant rate)", warmup_steps));
  return {Kind::Linear, warmup_steps, warmup_steps, max_lr, 0};
}

LRScheduler LRScheduler::cosine(std::int64_t total_steps, double max_lr, double min_lr) {
  if (total_steps < 1)
    throw TrainingError::invalid_config(fmt::format("total_steps is {}, want it positive", total_steps));
  return {Kind::Cosine, 0, total_steps, max_lr, min_lr};
}

LRScheduler LRScheduler::warmup_cosine(std::int64_t warmup_steps, std::int64_t total_steps, double max_lr,
                                       double min_lr) {
  if (warmup_steps < 1)
    throw TrainingError::invalid_config(
        fmt::format("warmup_steps is {}, want it positive (or use cosine)", warmup_steps));
  if (total_steps <= warmup_steps)
    throw TrainingError::invalid_config(
        fmt::format("total_steps is {}, want it above warmup_steps = {}", total_steps, warmup_steps));
  return {Kind::WarmupCosine, warmup_steps, total_steps, max_lr, min_lr};
}

double LRScheduler::get_lr(std::int64_t step) const {
  step = std::max<std::int64_t>(step, 0);
  if (kind_ == Kind::Constant) return max_lr_;
  if (step < warmup_steps_) return max_lr_ * static_cast<double>(step) / static_cast<double>(warmup_steps_);
  if (kind_ == Kind::Linear) return max_lr_;
  const double progress = std::min(
      1.0, static_cast<double>(step - warmup_steps_) / static_cast<double>(total_steps_ - warmup_steps_));
  return min_lr_ + 0.5 * (max_lr_ - min_lr_) * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace caldera::v1
