// The coefficients are Chebyshev fits of 60-digit values made with mpmath; each list says what it fits,
// where, and how well.
#include "ops/elementwise/special.h"

#include <limits>
#include <numbers>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/log_gamma.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/rounding.h"
#include "ops/elementwise/trigonometry.h"

namespace caldera {
namespace {

using ops::is_f64;
using ops::polynomial;
using ops::real_function;
using Coefficients = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

/// x - round(x): the argument of functions with period 1.
LazyTensor fraction(const LazyTensor& x) { return x - round(x); }

/// exp(-x^2) for |x| < 2^12, as exact as exp: x^2 is split into a square that is exact and a small rest.
LazyTensor gauss(const LazyTensor& x) {
  const LazyTensor high = trunc(x * 16) * 0.0625;
  return exp(-(high * high)) * exp((high - x) * (high + x));
}

// ---- the error function

void erf_vjp(VjpContext& c) {
  c.grads[0] = c.cotangent * (2.0 * std::numbers::inv_sqrtpi * exp(-(c.inputs[0] * c.inputs[0])));
}
const OpDef kErf = ops::elementwise_op("erf", ScalarOp::erf, erf_vjp);

LazyTensor erfc_slope(const LazyTensor& x, const LazyTensor&) {
  return -2 * std::numbers::inv_sqrtpi * exp(-(x * x));
}
LazyTensor erfinv_slope(const LazyTensor&, const LazyTensor& y) {
  return 0.5 / std::numbers::inv_sqrtpi * exp(y * y);
}
const OpDef kErfc = ops::sloped<erfc_slope>("erfc");
const OpDef kErfinv = ops::sloped<erfinv_slope>("erfinv");

/// erfc(x) for x >= 1/2, as (1 + 2 x) exp(x^2) erfc(x), which is smooth in (x - 3.75) / (x + 3.75) (Shepherd
/// and Laframboise 1981).
LazyTensor erfc_above(const LazyTensor& x) {
  // Relative errors 1.3e-9 up to 10.1 and 5.1e-18 up to 27.5, where results vanish in f32 and f64.
  static const Coefficients kNarrow{1.2375126303884362,    -0.14024057629283221,  0.0035854985019341818,
                                    0.082275501575659733,  -0.10880693650707176,  0.092322328424818993,
                                    -0.058651270540596391, 0.028272586532878134,  -0.0099951698351057746,
                                    0.0018375758890805031, 0.00081630036036588585};
  static const Coefficients kWide{
      1.2375126308378276,     -0.14024059858554701,   0.003585415485465752,   0.082276738490149532,
      -0.10880393014184976,   0.092304321160264666,   -0.058693398586710464,  0.028362277420170033,
      -0.0097465796007863067, 0.0017556258474428534,  0.00029371402565764112, -0.00029015408091456905,
      5.1647223111766457e-5,  2.2384350565041111e-5,  -1.1437894356746187e-5, -9.7408318900683404e-7,
      1.7382428011860549e-6,  -5.6007759664516745e-8, -2.4070618681991881e-7, 2.1697084457555476e-8,
      2.4711738482790376e-8,  -2.6616118709031573e-9};
  const LazyTensor bounded = minimum(x, full_like(x, is_f64(x) ? 27.5 : 10.1));
  const LazyTensor t = (bounded - 3.75) / (bounded + 3.75);
  const LazyTensor smooth = polynomial(t, is_f64(x) ? kWide : kNarrow) / (1 + 2 * bounded);
  return gauss(bounded) * smooth;
}

/// To three digits or better: M. Giles, "Approximating the erfinv function", GPU Computing Gems (2012), whose
/// polynomials are those of single precision; beyond the numbers that single precision has next to 1, a fit
/// of relative error 2e-5 up to 1 - 2^-53.
LazyTensor erfinv_start(const LazyTensor& x) {
  static const Coefficients kCentre{1.50140941,     0.246640727,   -0.00417768164,
                                    -0.00125372503, 0.00021858087, -4.39150654e-6,
                                    -3.5233877e-6,  3.43273939e-7, 2.81022636e-8};
  static const Coefficients kTail{2.83297682,    1.00167406,     0.00943887047,
                                  -0.0076224613, 0.00573950773,  -0.00367342844,
                                  0.00134934322, 0.000100950558, -0.000200214257};
  static const Coefficients kFarTail{4.849891753, 1.010289981, -4.247558195e-5, -0.0002170882169};
  const LazyTensor w = -log((1 - x) * (1 + x));
  const LazyTensor root = sqrt(w);
  LazyTensor tail = polynomial(root - 3, kTail);
  if (is_f64(x)) tail = where(root > 4, polynomial(root - 5, kFarTail), tail);
  return where(w < 5, polynomial(w - 2.5, kCentre), tail) * x;
}

/// One step of Halley's method towards erf(y) = x, for x >= 0: the number of right digits triples.
LazyTensor erfinv_step(const LazyTensor& x, const LazyTensor& y) {
  const LazyTensor error = where(x < 0.5, erf(y) - x, (1 - x) - erfc(y));
  const LazyTensor newton = error / (2 * std::numbers::inv_sqrtpi * gauss(y));
  return y - newton / (1 + y * newton);
}

// ---- log Gamma

LazyTensor lgamma_slope(const LazyTensor& x, const LazyTensor&) { return digamma(x); }
const OpDef kLgamma = ops::sloped<lgamma_slope>("lgamma");

/// log Gamma(x) for x >= 1/2.
LazyTensor lgamma_above(const LazyTensor& x) {
  // Down to [1.5, 2.5] by Gamma(x) = (x - 1) Gamma(x - 1).
  LazyTensor low = where(x < 8.5, x, full_like(x, 2));
  LazyTensor product = ones_like(x);
  for (int i = 0; i < 6; ++i) {
    const LazyTensor above = low >= 2.5;
    low = where(above, low - 1, low);
    product = where(above, product * low, product);
  }
  // Below 1.5 one step up: log Gamma(x) = log Gamma(1 + x) - log(x), whose logarithm is exact near 1.
  const LazyTensor below = low < 1.5;
  const LazyTensor z = where(below, low - 1, low - 2);
  const LazyTensor near_two = z * ops::log_gamma_ratio(z);
  const LazyTensor small = where(below, near_two - log1p(z), near_two + log(product));
  // Stirling's series.
  static const Coefficients kStirling{1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                      1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const LazyTensor far = where(x < 8.5, full_like(x, 8.5), x);
  const LazyTensor inverse = 1 / far;
  const LazyTensor series = inverse * polynomial(inverse * inverse, kStirling);
  const LazyTensor large = (far - 0.5) * (log(far) - 1) + (series + (kHalfLogTwoPi - 0.5));
  return where(x < 8.5, small, large);
}

/// digamma(x) for x >= 1/2: steps up by digamma(x) = digamma(x + 1) - 1 / x, then the asymptotic series.
LazyTensor digamma_above(const LazyTensor& x) {
  static const Coefficients kSeries{1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                    1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const int steps = is_f64(x) ? 10 : 6;
  LazyTensor sum = 1 / x;
  for (int i = 1; i < steps; ++i) sum = sum + 1 / (x + i);
  const LazyTensor far = x + steps;
  const LazyTensor inverse = 1 / far;
  const LazyTensor square = inverse * inverse;
  return log(far) - (0.5 * inverse + square * polynomial(square, kSeries)) - sum;
}

/// The slope of digamma, for x >= 1/2: steps up by f(x) = f(x + 1) + 1 / x^2, then the asymptotic series.
LazyTensor trigamma_above(const LazyTensor& x) {
  // Bernoulli's numbers.
  static const Coefficients kSeries{1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                    5.0 / 66, -691.0 / 2730, 7.0 / 6};
  const int steps = is_f64(x) ? 10 : 6;
  const auto term = [&x](int i) {
    const LazyTensor inverse = 1 / (x + i);
    return inverse * inverse;
  };
  LazyTensor sum = term(0);
  for (int i = 1; i < steps; ++i) sum = sum + term(i);
  const LazyTensor inverse = 1 / (x + steps);
  const LazyTensor square = inverse * inverse;
  return inverse * (1 + 0.5 * inverse + square * polynomial(square, kSeries)) + sum;
}

/// Infinite at 0, -1, -2 ...; below 1/2 by reflection: f(x) + f(1 - x) = (pi / sin(pi x))^2.
LazyTensor trigamma(const LazyTensor& x, const LazyTensor& /*digamma_of_x*/) {
  const LazyTensor reflects = x < 0.5;
  const LazyTensor above = trigamma_above(where(reflects, 1 - x, x));
  const LazyTensor sine = sin(kPi * fraction(where(reflects, x, full_like(x, 0.5))));
  const LazyTensor ratio = kPi / sine;
  return where(reflects, ratio * ratio - above, above);
}
const OpDef kDigamma = ops::sloped<trigamma>("digamma");

}  // namespace

LazyTensor ops::log_gamma_ratio(const LazyTensor& z) {
  static const Coefficients kNarrow{0.42278433509846714,    0.32246701804549948,    -0.067352294090874079,
                                    0.0205816254365885,     -0.0073859208847835776, 0.0028788686837407501,
                                    -0.0011874848136699278, 0.00057025125028297812, -0.00025056202146086634};
  static const Coefficients kWide{0.42278433509846714,    0.32246703342411322,    -0.067352301053195639,
                                  0.02058080842778338,    -0.0073855510289355447, 0.0028905103308659009,
                                  -0.0011927539009983087, 0.00050966951965266728, -0.00022315497746292723,
                                  9.9457616921571331e-5,  -4.4923727564247653e-5, 2.0506019701747619e-5,
                                  -9.4562885151017192e-6, 4.3828545383846668e-6,  -1.9743106888421067e-6,
                                  9.2428522251622767e-7,  -5.8112777689212462e-7, 2.7475390051909664e-7};
  return polynomial(z, is_f64(z) ? kWide : kNarrow);
}

LazyTensor erf(const LazyTensor& x) { return ops::elementwise(kErf, x); }

LazyTensor sinc(const LazyTensor& x) {
  return real_function(x, [](const LazyTensor& y) {
    // Near 0 the series, so that derivatives of every order are right there; elsewhere sin(pi y) of the
    // fraction, which is exact however large y is.
    static const Coefficients kSeries{1.0,          -1.0 / 6,        1.0 / 120,        -1.0 / 5040,
                                      1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
    const LazyTensor near = abs(y) < 0.125;
    const LazyTensor angle = kPi * where(near, y, zeros_like(y));
    const LazyTensor far = where(near, full_like(y, 0.5), y);
    const LazyTensor whole = round(far);
    const LazyTensor sine = sin(kPi * (far - whole));
    const LazyTensor is_odd = remainder(whole, 2) != 0;
    return where(near, polynomial(angle * angle, kSeries), where(is_odd, -sine, sine) / (kPi * far));
  });
}

LazyTensor erfc(const LazyTensor& x) {
  return real_function(x, [](const LazyTensor& y) {
    const LazyTensor value = where(y < 0.5, 1 - erf(y), erfc_above(maximum(y, full_like(y, 0.5))));
    return ops::with_slope(kErfc, value, y);
  });
}

LazyTensor erfinv(const LazyTensor& x) {
  return real_function(x, [](const LazyTensor& y) {
    const LazyTensor a = abs(y);
    const LazyTensor inside = where(a < 1, a, zeros_like(a));
    LazyTensor value = erfinv_start(inside);
    if (is_f64(y)) value = erfinv_step(inside, erfinv_step(inside, value));
    const LazyTensor outside = where(a == 1, full_like(a, kInfinity), full_like(a, kNan));
    value = where(a < 1, value, outside);
    return ops::with_slope(kErfinv, where(y > 0, value, where(y < 0, -value, y)), y);
  });
}

LazyTensor lgamma(const LazyTensor& x) {
  return real_function(x, [](const LazyTensor& y) {
    // Below 1/2 by reflection: Gamma(x) Gamma(1 - x) = pi / sin(pi x).
    const LazyTensor reflects = y < 0.5;
    const LazyTensor above = lgamma_above(where(reflects, 1 - y, y));
    const LazyTensor sine = sin(kPi * abs(fraction(where(reflects, y, zeros_like(y)))));
    const LazyTensor value = where(reflects, -log(sine * (1 / kPi)) - above, above);
    const LazyTensor is_pole = logical_or(logical_and(reflects, sine == 0), y == -kInfinity);
    return ops::with_slope(kLgamma, where(is_pole, full_like(y, kInfinity), value), y);
  });
}

LazyTensor digamma(const LazyTensor& x) {
  return real_function(x, [](const LazyTensor& y) {
    const LazyTensor reflects = y < 0.5;
    const LazyTensor above = digamma_above(where(reflects, 1 - y, y));
    const LazyTensor angle = kPi * fraction(where(reflects, y, full_like(y, 0.25)));
    const LazyTensor is_pole = angle == 0;
    const LazyTensor cotangent = 1 / tan(where(is_pole, ones_like(angle), angle));
    const LazyTensor value = where(reflects, above - kPi * cotangent, above);
    const LazyTensor at_pole = where(y == 0, -1 / stop_gradient(y), full_like(y, kNan));
    return ops::with_slope(kDigamma, where(is_pole, at_pole, value), y);
  });
}

}  // namespace caldera
