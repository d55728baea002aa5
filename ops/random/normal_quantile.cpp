// Wichura, "The percentage points of the normal distribution" (1988), AS 241, PPND16: relative error 1e-16 in
// exact arithmetic. Logarithms of probabilities are used below, so that tails of probability 1e-300 are drawn
// from in f32.
#include "ops/random/normal_quantile.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"

namespace caldera::ops {
namespace {

/// A polynomial over another, coefficients from the constant one on.
struct Rational {
  double above[8], below[8];
};

constexpr Rational kCentre{
    {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
     4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3},
    {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
     2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3}};
constexpr Rational kFlank{{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                           3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4},
                          {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
                           1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                           1.05075007164441684324e-9}};
constexpr Rational kTail{{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
                          2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                          2.71155556874348757815e-5, 2.01033439929228813265e-7},
                         {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
                          1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
                          1.42151175831644588870e-7, 2.04426310338993978564e-15}};

LazyTensor polynomial(std::span<const double> coefficients, const LazyTensor& x) {
  LazyTensor out = x * coefficients.back() + coefficients[coefficients.size() - 2];
  for (std::size_t i = coefficients.size() - 2; i-- > 0;) out = out * x + coefficients[i];
  return out;
}
LazyTensor ratio(const Rational& r, const LazyTensor& x) {
  return polynomial(r.above, x) / polynomial(r.below, x);
}

/// Below this even f64 has no probabilities, and the rationals end.
constexpr double kDeepest = -37;

double log_probability(double x) { return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2)); }

/// Where r = sqrt(-log(probability)) is large.
LazyTensor distance_in_tail(const LazyTensor& r, double largest) {
  const LazyTensor near = ratio(kFlank, r - 1.6);
  return largest <= 5 ? near : where(r <= 5, near, ratio(kTail, r - 5));
}

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
  constexpr double kCentral = 0.425;
  if (std::exp(top) <= 0.5 - kCentral) return below;
  const LazyTensor probability = part * std::exp(top);
  const LazyTensor q = probability - 0.5;
  const LazyTensor middle = q * ratio(kCentre, kCentral * kCentral - q * q);
  LazyTensor out = where(q < -kCentral, below, middle);
  if (std::exp(top) > 0.5 + kCentral) {
    const LazyTensor rest = maximum(1.0 - probability, least);
    out = where(q > kCentral, distance_in_tail(sqrt(-log(rest)), std::sqrt(-std::log(least))), out);
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
