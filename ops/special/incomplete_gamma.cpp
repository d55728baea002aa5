// For a below 64 by the series of P up to x = a, and by Legendre's continued fraction of Q beyond; for larger
// a next to x = a by Temme's uniform expansion (1979; DLMF 8.12). Q of small x and a is 1 - P without the
// difference (DLMF 8.7.3).
#include "ops/special/incomplete_gamma.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "engine/base/error.h"
#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/log_gamma.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/rounding.h"
#include "ops/elementwise/sign.h"
#include "ops/elementwise/special.h"
#include "ops/special/normal_functions.h"

namespace caldera {
namespace {

using Coefficients = std::vector<double>;
using ops::is_f64;
using ops::polynomial;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr double kFullTurn = 2 * std::numbers::pi;
constexpr double kLargeShape = 64;  // from here on the expansion next to x = a
constexpr double kStirling = 10;    // from here on Stirling's series

const OpDef kWeight = ops::elementwise_op("gamma_weight", ScalarOp::gamma_weight);
const OpDef kSeries = ops::elementwise_op("gamma_series", ScalarOp::gamma_series);
const OpDef kFraction = ops::elementwise_op("gamma_fraction", ScalarOp::gamma_fraction);

LazyTensor otherwise(const LazyTensor& condition, const LazyTensor& x, double value) {
  return where(condition, x, full_like(x, value));
}

/// Gamma(1 + a) for 0 < a < 10.
LazyTensor gamma_of_next(const LazyTensor& a) {
  const LazyTensor below = a < 0.5;
  const LazyTensor steps = maximum(round(a - 1), zeros_like(a));
  const LazyTensor z = where(below, a, a - 1 - steps);
  LazyTensor factor = where(below, 1 / (1 + z), ones_like(z));
  for (int i = 0; i < 9; ++i) factor = where(steps > i, factor * (z + (2 + i)), factor);
  return exp(z * ops::log_gamma_ratio(z)) * factor;
}

/// The logarithm of Gamma*(a) = Gamma(a + 1) / (sqrt(2 pi a) (a / e)^a) for a >= 10.
LazyTensor stirling_rest(const LazyTensor& a) {
  static const Coefficients kSeries{1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                    1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  const LazyTensor inverse = 1 / a;
  return inverse * polynomial(inverse * inverse, kSeries);
}

/// x^a exp(-x) / Gamma(a + 1); `weight` is gamma_weight of a >= 10 and x.
LazyTensor density(const LazyTensor& a, const LazyTensor& x, const LazyTensor& weight) {
  const LazyTensor is_large = a >= kStirling;
  const LazyTensor large = otherwise(is_large, a, kStirling);
  const LazyTensor far = weight * exp(-stirling_rest(large)) / sqrt(kFullTurn * large);
  const LazyTensor small = where(is_large, full_like(a, 1), a);
  // From there on the exponential is 0, and the power of x, of at most 10, is still finite.
  const LazyTensor bounded = minimum(x, full_like(x, 2000));
  const LazyTensor root = exp(-0.5 * bounded);
  const LazyTensor near = pow(bounded, small) * root * root / gamma_of_next(small);
  return where(is_large, far, near);
}

/// Sum c_k(eta) a^-k, of DLMF 8.12.8. Rational arithmetic made the coefficients of the powers of eta; what is
/// left out is below 2e-18 and 1e-9 for a >= 64 and |eta| < 0.34.
LazyTensor temme_sum(const LazyTensor& a, const LazyTensor& eta) {
  // clang-format off
  static const std::vector<Coefficients> kWide{
    {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11, -5.830772132550426e-11},
    {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08, 1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09, 4.162792991842583e-10},
    {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10, -1.409252991086752e-08, 6.228974084922022e-09},
    {0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06, -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08},
    {-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06, 8.907507532205309e-07},
    {-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392, -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07, -1.3594048189768693e-05, 8.018470256334202e-06},
    {0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07, -8.153969367561969e-05, 5.61168275310625e-05},
    {0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234, 0.0002812695154763237},
  };
  static const std::vector<Coefficients> kNarrow{
    {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06},
    {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05},
    {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06, -0.0001073665322636516},
    {0.0006494341563786008},
  };
  // clang-format on
  const std::vector<Coefficients>& all = is_f64(a) ? kWide : kNarrow;
  const LazyTensor inverse = 1 / a;
  LazyTensor sum;
  for (std::size_t k = all.size(); k-- > 0;) {
    const LazyTensor term = polynomial(eta, all[k]);
    sum = sum.defined() ? sum * inverse + term : term;
  }
  return sum;
}

/// The smaller one of P (of x < a) and Q for a >= 64 and |x - a| < 0.3 a.
LazyTensor temme_tail(const LazyTensor& a, const LazyTensor& x, const LazyTensor& weight) {
  static const Coefficients kAtanh{1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                   1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  const LazyTensor distance = x - a, u = distance / (x + a), square = u * u;
  // a eta^2 / 2 = x - a - a log(x / a).
  const LazyTensor exponent = distance * u - 2 * a * (u * square) * polynomial(square, kAtanh);
  const LazyTensor root = sqrt(maximum(exponent, zeros_like(exponent)));
  const LazyTensor size = root * sqrt(2 / a), is_below = distance < 0;
  const LazyTensor rest = temme_sum(a, where(is_below, -size, size)) / sqrt(kFullTurn * a);
  return weight * (0.5 * erfcx(root) + where(is_below, -rest, rest));
}

/// Q for x <= 1 and a up to about 1: 1 - x^a / Gamma(a + 1) (1 + a sum (-x)^n / (n! (a + n))).
LazyTensor small_complement(const LazyTensor& a, const LazyTensor& x) {
  const LazyTensor below = a < 0.5, z = where(below, a, a - 1);
  const LazyTensor gamma = z * ops::log_gamma_ratio(z);
  const LazyTensor log_gamma = where(below, gamma - log1p(where(below, a, zeros_like(a))), gamma);
  const int terms = is_f64(x) ? 19 : 11;
  LazyTensor sum = zeros_like(x), power = ones_like(x);
  for (int n = 1; n <= terms; ++n) {
    power = power * (x * (-1.0 / n));
    sum = sum + power / (a + n);
  }
  const LazyTensor exponent = a * log(x) - log_gamma;
  return -(expm1(exponent) + exp(exponent) * a * sum);
}

struct Both {
  LazyTensor p, q;
};
/// For 0 < a, x < infinity.
Both inside(const LazyTensor& a, const LazyTensor& x) {
  const LazyTensor is_near = logical_and(a >= kLargeShape, abs(x - a) < 0.3 * a);
  const LazyTensor is_low = x <= maximum(a, ones_like(a));
  const auto primitive = [](const OpDef& op, const LazyTensor& b, const LazyTensor& y) {
    return ops::elementwise(op, b, y);
  };
  const LazyTensor weight = primitive(kWeight, otherwise(a >= kStirling, a, kStirling), x);
  const LazyTensor product = density(a, x, weight);
  // Where a branch is not chosen its loops are of arguments that end them soon.
  const LazyTensor by_series = logical_and(is_low, logical_not(is_near));
  const LazyTensor by_fraction = logical_not(logical_or(is_low, is_near));
  const LazyTensor low =
      product * primitive(kSeries, otherwise(by_series, a, 8), otherwise(by_series, x, 0.25));
  const LazyTensor high =
      product * a * primitive(kFraction, otherwise(by_fraction, a, 1), otherwise(by_fraction, x, 64));
  const LazyTensor tail =
      temme_tail(otherwise(is_near, a, kLargeShape), otherwise(is_near, x, kLargeShape), weight);
  const LazyTensor is_p = where(is_near, x < a, is_low);
  const LazyTensor value = minimum(where(is_near, tail, where(is_low, low, high)), ones_like(a));
  // Of small x: where P is near 1 (Cephes, igamc.c).
  const LazyTensor is_small =
      logical_and(x <= 1, a <= where(x <= 0.5, -0.4 / log(otherwise(x <= 0.5, x, 0.5)), 1.1 * x));
  const LazyTensor complement = small_complement(otherwise(is_small, a, 1), otherwise(is_small, x, 1));
  return {where(is_p, value, 1 - value), where(is_small, complement, where(is_p, 1 - value, value))};
}

/// x^(a - 1) exp(-x) / Gamma(a), the derivative of P in x.
LazyTensor slope(const LazyTensor& a, const LazyTensor& x) {
  const LazyTensor is_end = logical_and(x == 0, a == 1);  // there the logarithm does not count
  const LazyTensor power = (a - 1) * log(where(is_end, ones_like(x), x));
  return where(x == INFINITY, zeros_like(x), exp(power - x - lgamma(a)));
}

template <int sign>
constexpr OpDef incomplete(std::string_view name) {
  return {.name = name,
          .kind = OpClass::identity,
          .vjp =
              [](VjpContext& c) {
                if (c.needed[1])
                  throw GradientError(std::string(c.output.node().op().name) +
                                      ": no gradient in a; use stop_gradient if it is constant");
                c.grads[2] = c.cotangent * (sign * slope(c.inputs[1], c.inputs[2]));
              },
          .jvp =
              [](JvpContext& c) {
                if (c.tangents[1].defined())
                  throw GradientError(std::string(c.output.node().op().name) +
                                      ": no tangent in a; use stop_gradient if it is constant");
                c.tangent = c.tangents[2] * (sign * slope(c.inputs[1], c.inputs[2]));
              }};
}
const OpDef kIgamma = incomplete<1>("igamma");
const OpDef kIgammac = incomplete<-1>("igammac");

LazyTensor incomplete_gamma(const OpDef& op, const LazyTensor& given_a, const LazyTensor& given_x) {
  const char* const name = op.name.data();
  return ops::real_function(name, given_a, given_x, [&](const LazyTensor& a, const LazyTensor& x) {
    const LazyTensor is_inside =
        logical_and(logical_and(a > 0, a < kInfinity), logical_and(x > 0, x < kInfinity));
    const Both both = inside(otherwise(is_inside, a, 1), otherwise(is_inside, x, 1));
    const bool is_p = &op == &kIgamma;
    // At the ends P is 0 or 1, unless both are at one end.
    const LazyTensor is_one = logical_or(logical_and(a == 0, x > 0), logical_and(x == kInfinity, a >= 0));
    const LazyTensor is_zero = logical_or(logical_and(x == 0, a > 0), logical_and(a == kInfinity, x >= 0));
    const auto p = [&](double at_one, double at_zero) {
      return where(is_one, full_like(a, at_one), full_like(a, at_zero));
    };
    const LazyTensor known =
        logical_and(logical_or(is_one, is_zero), logical_not(logical_and(is_one, is_zero)));
    const LazyTensor ends = otherwise(known, is_p ? p(1, 0) : p(0, 1), kNothing);
    const LazyTensor value = where(is_inside, is_p ? both.p : both.q, ends);
    return ops::make(op, value.shape(), value.dtype(), {stop_gradient(value), a, x});
  });
}

}  // namespace

LazyTensor igamma(const LazyTensor& a, const LazyTensor& x) { return incomplete_gamma(kIgamma, a, x); }
LazyTensor igammac(const LazyTensor& a, const LazyTensor& x) { return incomplete_gamma(kIgammac, a, x); }

}  // namespace caldera
