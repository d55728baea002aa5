// How many terms count was found with 40-digit values: series at x = a up to 100 and x = 0.7 a beyond, and
// fractions between x = a and x = 300 a, each with a margin.
#include "engine/device/cpu/simd/gamma_terms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace caldera::cpu {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostTerms = 10000;  // series next to x = a where a is larger than any that is asked for

}  // namespace

double gamma_weight(double a, double x) {
  if (!(a > 0) || !(x > 0)) return kNoNumber;
  const double distance = x - a;
  double exponent, rest;
  if (std::abs(distance) < 0.3 * a) {
    // a log(x / a) = 2 a (u + u^3 / 3 + ...) of u = (x - a) / (x + a), so that the exponent is -(x - a)^2 /
    // (x
    // + a) and little more.
    const double total = x + a, u = distance / total, square = u * u;
    double tail = 0;
    for (int i = 23; i >= 3; i -= 2) tail = tail * square + 1.0 / i;
    const double correction = 2 * a * u * square * tail;
    const double main = distance * u;
    const double lost_total = std::min(a, x) - (total - std::max(a, x));
    const double product = distance * distance, back = main * total;
    rest = ((product - back) + (std::fma(distance, distance, -product) - std::fma(main, total, -back)) -
            main * lost_total) /
           total;
    exponent = correction - main;
    rest = (correction - (exponent + main)) - rest;
  } else {
    const double ratio = x / a, logarithm = std::log(ratio), product = a * logarithm;
    exponent = product - distance;
    if (!(exponent > -800)) return exponent != exponent ? kNoNumber : 0;
    rest = std::fma(a, logarithm, -product) + a * (std::fma(-ratio, a, x) / x) +
           ((product - exponent) - distance);
  }
  return std::exp(exponent) * (1 + rest);
}

double gamma_series(double a, double x, bool wide) {
  if (!(a > 0) || !(x > 0) || !(x <= std::max(a, 1.0))) return kNoNumber;
  double terms = wide ? 18 + 8 * std::sqrt(x) : 10 + 5 * std::sqrt(x);
  terms = std::min(terms, x <= 0.7 * a ? (wide ? 104.0 : 52.0) : kMostTerms);
  double sum = 1;
  for (int i = static_cast<int>(terms); i > 0; --i) sum = 1 + sum * x / (a + i);
  return sum;
}

double gamma_fraction(double a, double x, bool wide) {
  if (!(a > 0) || !(x >= std::max(a, 1.0))) return kNoNumber;
  const double root = std::sqrt(x);
  const double terms = wide ? 12 + 110 / x + std::min(3 * root, 30.0) : 6 + 24 / x + std::min(2 * root, 20.0);
  const int n = static_cast<int>(terms);
  const double start = x + 1 - a;
  double value = start + 2 * n;
  for (int i = n; i > 0; --i) value = (start + 2 * (i - 1)) + i * (a - i) / value;
  return 1 / value;
}

}  // namespace caldera::cpu
