// Wichura, "The percentage points of the normal distribution" (1988), AS 241, PPND16: relative error 1e-16 in
// exact arithmetic.
#include "ops/special/normal_rationals.h"

#include <numbers>
#include <span>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/real_function.h"

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

LazyTensor quotient(const Rational& r, const LazyTensor& x) {
  return polynomial(x, std::span(r.above)) / polynomial(x, std::span(r.below));
}

/// distance_in_tail() in float32, where 1.6 <= r <= 10.25: what is missing to sqrt(2) r is little, so that
/// its rounding is, too. A Chebyshev fit in 1 / (r + 3) of values of 30 digits, off by 2e-8.
LazyTensor narrow_distance(const LazyTensor& r) {
  static const std::vector<double> kMissing{
      0.49343366648759543,   0.27868935798074978,   0.047017153848713977,  0.015042100078554969,
      0.003436198981639311,  0.0012199159246277732, 0.0002918626852101878, 0.00011497518064154108,
      3.9923597357321832e-5, 1.9422735382994919e-5};
  const LazyTensor t = (1 / (r + 3) - 0.14643150123051682) * 14.092485549132948;
  return std::numbers::sqrt2 * r - polynomial(t, kMissing);
}

}  // namespace

LazyTensor central_quantile(const LazyTensor& q) {
  return q * quotient(kCentre, kCentralHalf * kCentralHalf - q * q);
}

LazyTensor distance_in_tail(const LazyTensor& r, double largest) {
  const LazyTensor near = quotient(kFlank, r - 1.6);
  return largest <= 5 ? near : where(r <= 5, near, quotient(kTail, r - 5));
}

LazyTensor normal_quantile_of(const LazyTensor& p) {
  const LazyTensor q = p - 0.5;
  const LazyTensor is_lower = q < 0;
  const LazyTensor r = sqrt(-log(where(is_lower, p, 1 - p)));
  const LazyTensor distance = is_f64(p) ? distance_in_tail(r, 28) : narrow_distance(r);
  return where(abs(q) <= kCentralHalf, central_quantile(q), where(is_lower, -distance, distance));
}

}  // namespace caldera::ops
