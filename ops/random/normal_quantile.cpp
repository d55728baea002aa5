// By the rational functions of ops/special/normal_rationals.h. Logarithms of probabilities are used below, so
// that tails of probability 1e-300 are drawn from in f32.
#include "ops/random/normal_quantile.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/special/normal_rationals.h"

namespace caldera::ops {
namespace {

/// Below this even f64 has no probabilities, and the rationals end.
constexpr double kDeepest = -37;

double log_probability(double x) { return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2)); }

}  // namespace

LazyTensor truncated_normal_quantile(const LazyTensor& u, double least, double lower, double upper) {
  if (upper < kDeepest) {
    // The density is that of |x| exp(-x^2 / 2) but for 1 / x^2 of it.
    const double share = std::exp((upper - lower) * (upper + lower) / 2);
    return -sqrt(upper * upper - 2.0 * log(u * (1 - share) + share));
  }
  const double top = log_probability(upper);
  const double share = lower < kDeepest ? 0 : std::exp(log_probability(lower) - top);
  const LazyTensor part = u * (1 - share) + share;  // of the probability below `upper`
  const double largest = std::sqrt(-(top + std::log(least * (1 - share) + share)));
  LazyTensor below = -distance_in_tail(sqrt(-(log(part) + top)), largest);
  if (std::exp(top) <= 0.5 - kCentralHalf) return below;
  const LazyTensor probability = part * std::exp(top);
  const LazyTensor q = probability - 0.5;
  const LazyTensor middle = central_quantile(q);
  LazyTensor out = where(q < -kCentralHalf, below, middle);
  if (std::exp(top) > 0.5 + kCentralHalf) {
    const LazyTensor rest = maximum(1.0 - probability, least);
    out = where(q > kCentralHalf, distance_in_tail(sqrt(-log(rest)), std::sqrt(-std::log(least))), out);
  }
  return out;
}

double rounded_up(double value, DType type) {
  if (type == DType::f64 || !std::isfinite(value)) return value;
  const int lowest = type == DType::f16 ? -24 : -149;  // the exponent of the least subnormal, at most
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - facts(type).digits, lowest);
  return std::ldexp(std::ceil(std::ldexp(value, -unit)), unit);
}

}  // namespace caldera::ops
