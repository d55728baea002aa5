// By Euler and Maclaurin's sum: the first terms themselves, the rest by an integral and derivatives at its
// beginning.
#include "ops/special/zeta.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/rounding.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/trigonometry.h"

namespace caldera {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kHalfTurn = std::numbers::pi;

/// B_2j / (2 j)! for j = 1, 2, ...
constexpr std::array kBernoulli{1.0 / 12,
                                -1.0 / 720,
                                1.0 / 30240,
                                -1.0 / 1209600,
                                1.0 / 47900160,
                                -691.0 / 1307674368000,
                                1.0 / 74724249600,
                                -3617.0 / 10670622842880000,
                                43867.0 / 5109094217170944000,
                                -174611.0 / 802857662698291200000.0};

struct Effort {
  int terms, derivatives;
};
Effort effort_of(const LazyTensor& q) { return ops::is_f64(q) ? Effort{12, 10} : Effort{6, 5}; }

/// What follows the first terms, over end^(1 - s), end = q + terms: 1 / (s - 1) and, over end, 1/2 + sum B_2j
/// / (2 j)! s (s + 1) ... (s + 2 j - 2) / end^(2 j - 1). It is finite where end is not. Operands that are
/// numbers or tensors.
template <class S>
LazyTensor rest_of_sum(const S& s, const LazyTensor& end, int derivatives) {
  const LazyTensor inverse = 1 / end, squared = inverse * inverse;
  LazyTensor factor = inverse * s;
  LazyTensor sum = kBernoulli[0] * factor;
  for (int j = 1; j < derivatives; ++j) {
    factor = factor * squared * ((s + (2.0 * j - 1)) * (s + 2.0 * j));
    sum = sum + kBernoulli.at(static_cast<std::size_t>(j)) * factor;
  }
  return 1 / (s - 1.0) + inverse * (0.5 + sum);
}

/// For q > 0 and s > 1.
LazyTensor zeta_inside(const LazyTensor& s, const LazyTensor& q) {
  const Effort effort = effort_of(q);
  LazyTensor sum = pow(q, -s);
  for (int k = 1; k < effort.terms; ++k) sum = sum + pow(q + k, -s);
  // Of large s the rest is next to nothing beside the first term, or that is 0 too; factors would overflow.
  constexpr double kLarge = 200;
  const LazyTensor has_rest = s < kLarge;
  const LazyTensor power = where(has_rest, s, full_like(s, kLarge));
  const LazyTensor end = q + effort.terms;
  const LazyTensor rest = pow(end, 1 - power) * rest_of_sum(power, end, effort.derivatives);
  return sum + where(has_rest, rest, zeros_like(rest));
}

/// x to a positive power by products.
LazyTensor to_the(const LazyTensor& x, int n) {
  LazyTensor out, square = x;
  for (;; n >>= 1, square = square * square) {
    if ((n & 1) != 0) out = out.defined() ? out * square : square;
    if (n == 1) return out;
  }
}

/// n! zeta(n + 1, x) for x > 0: every term is scaled by the root of n!, in f32, so that neither n! nor powers
/// of x leave the range where the result does not.
LazyTensor scaled_zeta(int n, const LazyTensor& x) {
  const int s = n + 1;
  const double factorial = std::tgamma(n + 1.0);
  const double scale = static_cast<float>(std::pow(factorial, 1.0 / s));
  const Effort effort = effort_of(x);
  const auto term = [&](const LazyTensor& at) { return to_the(scale / at, s); };
  // The smallest first.
  const LazyTensor end = x + effort.terms;
  LazyTensor sum =
      to_the(scale / end, n) * (scale * rest_of_sum(static_cast<double>(s), end, effort.derivatives));
  for (int k = effort.terms - 1; k > 0; --k) sum = sum + term(x + k);
  return (factorial / std::pow(scale, s)) * (sum + term(x));
}

/// The n-th derivative of cot(pi x) over pi^n, as a polynomial in c = cot(pi x): that of c is -(1 + c^2).
std::vector<double> cotangent_derivative(int n) {
  std::vector<double> p{0, 1};
  for (int k = 0; k < n; ++k) {
    std::vector<double> next(p.size() + 1, 0.0);
    for (std::size_t i = 1; i < p.size(); ++i) {
      next[i - 1] -= static_cast<double>(i) * p[i];
      next[i + 1] -= static_cast<double>(i) * p[i];
    }
    p = next;
  }
  return p;
}

LazyTensor polygamma_of(int n, const LazyTensor& x);

const OpDef kPolygamma{.name = "polygamma",
                       .kind = OpClass::identity,
                       .vjp =
                           [](VjpContext& c) {
                             const auto n = static_cast<int>(c.output.node().attributes()[0]);
                             c.grads[1] = c.cotangent * polygamma_of(n + 1, c.inputs[1]);
                           },
                       .jvp =
                           [](JvpContext& c) {
                             const auto n = static_cast<int>(c.output.node().attributes()[0]);
                             c.tangent = c.tangents[1] * polygamma_of(n + 1, c.inputs[1]);
                           }};

/// For n > 0, in the type that is computed with.
LazyTensor polygamma_of(int n, const LazyTensor& x) {
  const double sign = n % 2 == 0 ? -1 : 1;
  const LazyTensor reflects = x < 0;
  const LazyTensor above = scaled_zeta(n, where(reflects, 1 - x, x));
  const LazyTensor angle = kHalfTurn * (x - round(x));
  const LazyTensor is_pole = logical_and(x <= 0, angle == 0);
  const LazyTensor safe = logical_and(reflects, angle != 0);
  const LazyTensor cotangent = 1 / tan(where(safe, angle, ones_like(angle)));
  const LazyTensor derivative =
      std::pow(kHalfTurn, n + 1) * ops::polynomial(cotangent, cotangent_derivative(n));
  const LazyTensor value = where(reflects, -(above + derivative), sign * above);
  const std::array<std::int64_t, 1> attributes{n};
  return ops::make(kPolygamma, x.shape(), x.dtype(),
                   {stop_gradient(where(is_pole, full_like(x, sign * kInfinity), value)), x}, attributes);
}

}  // namespace

LazyTensor zeta(const LazyTensor& s, const LazyTensor& q) {
  return ops::real_function("zeta", s, q, [](const LazyTensor& a, const LazyTensor& b) {
    const LazyTensor inside = logical_and(a > 1, b > 0);
    const LazyTensor value = zeta_inside(where(inside, a, full_like(a, 2)), where(inside, b, ones_like(b)));
    const LazyTensor is_pole = logical_or(a == 1, logical_and(a > 1, logical_and(b <= 0, floor(b) == b)));
    const LazyTensor missing = logical_or(isnan(a), isnan(b));
    const LazyTensor end =
        where(logical_and(is_pole, logical_not(missing)), full_like(a, kInfinity), full_like(a, kNoValue));
    return where(inside, value, end);
  });
}

LazyTensor polygamma(int n, const LazyTensor& x) {
  constexpr int kMost = 30;
  if (n < 0 || n > kMost) throw ValueError(fmt::format("polygamma: n is {}, want 0 to {}", n, kMost));
  if (n == 0) return digamma(x);
  return ops::real_function(x, [n](const LazyTensor& y) { return polygamma_of(n, y); });
}

LazyTensor multigammaln(const LazyTensor& a, int p) {
  constexpr int kMost = 1000;
  if (p < 1 || p > kMost) throw ValueError(fmt::format("multigammaln: p is {}, want 1 to {}", p, kMost));
  return ops::real_function(a, [p](const LazyTensor& x) {
    const double highest = (p - 1) / 2.0;
    const LazyTensor inside = x > highest;
    const LazyTensor given = reshape(where(inside, x, full_like(x, highest + 1)), Shape{x.numel(), 1});
    const LazyTensor halves = 0.5 * iota(Shape{1, p}, 1, x.dtype(), x.device());
    const LazyTensor total = sum(lgamma(given - halves), 1) + p * (p - 1) / 4.0 * std::log(kHalfTurn);
    return where(inside, reshape(total, x.shape()), full_like(x, kNoValue));
  });
}

}  // namespace caldera
