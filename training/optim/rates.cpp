#include "training/optim/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/error.h"

namespace caldera {
namespace {

void require_rate(bool holds, const char* what, double value) {
  if (!holds)
    throw ValueError(
        fmt::format("learning rate schedule: {} is {}, which is out of its domain", what, value));
}

void require_decay(double rate, double gamma) {
  require_rate(rate >= 0 && std::isfinite(rate), "the rate", rate);
  require_rate(gamma > 0 && std::isfinite(gamma), "gamma", gamma);
}

/// Half a cosine from one number to another.
double between(double from, double to, double progress) {
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * progress) + 1);
}

}  // namespace

StepRate::StepRate(double rate, std::int64_t step_size, double gamma)
    : rate_(rate), gamma_(gamma), step_size_(step_size) {
  require_decay(rate, gamma);
  require_rate(step_size > 0, "step_size", static_cast<double>(step_size));
}

double StepRate::learning_rate(std::int64_t step) const {
  const std::int64_t falls = step / step_size_;
  return rate_ * std::pow(gamma_, static_cast<double>(falls));
}

MultiStepRate::MultiStepRate(double rate, std::vector<std::int64_t> milestones, double gamma)
    : rate_(rate), gamma_(gamma), milestones_(std::move(milestones)) {
  require_decay(rate, gamma);
  std::ranges::sort(milestones_);
}

double MultiStepRate::learning_rate(std::int64_t step) const {
  const auto passed = std::ranges::upper_bound(milestones_, step) - milestones_.begin();
  return rate_ * std::pow(gamma_, static_cast<double>(passed));
}

ExponentialRate::ExponentialRate(double rate, double gamma) : rate_(rate), gamma_(gamma) {
  require_decay(rate, gamma);
}

double ExponentialRate::learning_rate(std::int64_t step) const {
  return rate_ * std::pow(gamma_, static_cast<double>(step));
}

OneCycleRate::OneCycleRate(double peak, std::int64_t total_steps, OneCycleOptions options)
    : peak_(peak), total_(total_steps), options_(options) {
  require_rate(peak >= 0 && std::isfinite(peak), "the peak", peak);
  require_rate(total_steps > 0, "total_steps", static_cast<double>(total_steps));
  require_rate(options.rising > 0 && options.rising < 1, "rising", options.rising);
  require_rate(options.first_factor > 0, "first_factor", options.first_factor);
  require_rate(options.last_factor > 0, "last_factor", options.last_factor);
}

double OneCycleRate::learning_rate(std::int64_t step) const {
  const double first = peak_ / options_.first_factor;
  const double top = options_.rising * static_cast<double>(total_) - 1,
               last = static_cast<double>(total_ - 1);
  const double at = std::min(static_cast<double>(step), last);
  if (at <= top) return between(first, peak_, at / top);
  return between(peak_, first / options_.last_factor, (at - top) / (last - top));
}

PlateauRate::PlateauRate(double rate, PlateauOptions options) : rate_(rate), options_(options) {
  require_rate(rate >= 0 && std::isfinite(rate), "the rate", rate);
  require_rate(options.factor > 0 && options.factor < 1, "factor", options.factor);
  require_rate(options.patience >= 0, "patience", static_cast<double>(options.patience));
  require_rate(options.cooldown >= 0, "cooldown", static_cast<double>(options.cooldown));
  require_rate(options.threshold >= 0 && options.threshold < 1, "threshold", options.threshold);
  require_rate(options.least >= 0, "least", options.least);
}

double PlateauRate::observe(double value) {
  if (value < best_ * (1 - options_.threshold) || std::isinf(best_)) {
    best_ = std::isnan(value) ? best_ : value;
    misses_ = 0;
  } else {
    ++misses_;
  }
  if (cooling_ > 0) {
    --cooling_;
    misses_ = 0;
  }
  if (misses_ > options_.patience) {
    const double next = std::max(rate_ * options_.factor, options_.least);
    if (rate_ - next > 1e-8) rate_ = next;
    cooling_ = options_.cooldown;
    misses_ = 0;
  }
  return rate_;
}

}  // namespace caldera
