#include "training/optim/loss_scaler.h"

#include <algorithm>
#include <cmath>

#include "ops/core/comparison.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

constexpr double kSmallestScale = 0x1p-24;
// The scaled loss is f32.
constexpr double kLargestScale = 0x1p+64;

}  // namespace

void LossScalerOptions::validate() const {
  const detail::OptionCheck require{"LossScaler"};
  require(initial_scale > 0 && initial_scale <= kLargestScale, "initial_scale", initial_scale,
          "above 0 and at most 2^64");
  require(growth_factor >= 1 && std::isfinite(growth_factor), "growth_factor", growth_factor, "at least 1");
  require(backoff_factor > 0 && backoff_factor < 1, "backoff_factor", backoff_factor, "in (0, 1)");
  require(growth_interval >= 1, "growth_interval", static_cast<double>(growth_interval), "at least 1");
}

LossScaler::LossScaler(const LossScalerOptions& options) : options_(options), scale_(options.initial_scale) {
  options_.validate();
}

LazyTensor LossScaler::scaled(const LazyTensor& loss) const { return loss * scale_; }

void LossScaler::unscale(std::vector<LazyTensor>& grads) const {
  const LazyTensor factor = 1 / scale_;
  for (LazyTensor& g : grads) g = g * factor;
}

void LossScaler::update(bool finite) {
  if (!finite) {
    scale_ *= options_.backoff_factor;
    good_steps_ = 0;
    return;
  }
  if (++good_steps_ < options_.growth_interval) return;
  scale_ = std::min(scale_ * options_.growth_factor, kLargestScale);
  good_steps_ = 0;
}

bool LossScaler::is_exhausted() const { return scale_ < kSmallestScale; }

void LossScaler::restore(const State& state) {
  const detail::OptionCheck require{"LossScaler"};
  require(state.scale > 0 && state.scale <= kLargestScale, "scale", state.scale, "above 0 and at most 2^64");
  scale_ = state.scale;
  good_steps_ = state.good_steps;
}

// x - x is 0 for finite x, and NaN otherwise.
LazyTensor is_finite_scalar(const LazyTensor& norm) { return equal(norm - norm, 0.0); }

}  // namespace caldera
