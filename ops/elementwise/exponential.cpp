#include "ops/elementwise/exponential.h"

#include <fmt/core.h>

#include <limits>
#include <numbers>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/sign.h"

namespace caldera {
namespace {

using ops::elementwise;
using ops::elementwise_op;
using ops::real_function;
using std::numbers::ln2;
using Context = VjpContext;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void exp_vjp(Context& c) { c.grads[0] = c.cotangent * c.output; }
// Not output + 1, which cancels far below 0.
void expm1_vjp(Context& c) { c.grads[0] = c.cotangent * exp(c.inputs[0]); }
void exp2_vjp(VjpContext& c) { c.grads[0] = c.cotangent * (c.output * ln2); }
void log_vjp(Context& c) { c.grads[0] = c.cotangent / c.inputs[0]; }
void log1p_vjp(Context& c) { c.grads[0] = c.cotangent / (c.inputs[0] + 1); }
void log2_vjp(VjpContext& c) { c.grads[0] = c.cotangent * std::numbers::log2e / c.inputs[0]; }
void log10_vjp(VjpContext& c) { c.grads[0] = c.cotangent * std::numbers::log10e / c.inputs[0]; }
void sqrt_vjp(Context& c) { c.grads[0] = c.cotangent * 0.5 / c.output; }
void rsqrt_vjp(Context& c) { c.grads[0] = c.cotangent * (-0.5 * (c.output * c.output * c.output)); }
void sigmoid_vjp(Context& c) { c.grads[0] = c.cotangent * (c.output * (1 - c.output)); }
void pow_vjp(Context& c) {
  const LazyTensor a = ops::anchored(c.inputs[0], c.output.device());
  const LazyTensor b = ops::anchored(c.inputs[1], c.output.device());
  // x^0 is 1 everywhere, so its slope is 0 even at x = 0 and NaN, where b * a^(b-1) would not be. Another
  // base there keeps b * a^(b-1), and with it the derivative by b.
  if (c.needed[0]) {
    const LazyTensor base = where(logical_and(b == 0, logical_not(abs(a) > 0)), ones_like(a), a);
    c.grads[0] = c.cotangent * (b * pow(base, b - 1));
  }
  // 0^b is constantly 0 for b > 0.
  if (c.needed[1]) {
    c.grads[1] = c.cotangent * where(logical_and(a == 0, b >= 0), zeros_like(c.output), c.output * log(a));
  }
}

const OpDef kExp = elementwise_op("exp", ScalarOp::exp, exp_vjp);
const OpDef kExpm1 = elementwise_op("expm1", ScalarOp::expm1, expm1_vjp);
const OpDef kExp2 = elementwise_op("exp2", ScalarOp::exp2, exp2_vjp);
const OpDef kLog = elementwise_op("log", ScalarOp::log, log_vjp);
const OpDef kLog1p = elementwise_op("log1p", ScalarOp::log1p, log1p_vjp);
const OpDef kLog2 = elementwise_op("log2", ScalarOp::log2, log2_vjp);
const OpDef kLog10 = elementwise_op("log10", ScalarOp::log10, log10_vjp);
const OpDef kSqrt = elementwise_op("sqrt", ScalarOp::sqrt, sqrt_vjp);
const OpDef kRsqrt = elementwise_op("rsqrt", ScalarOp::rsqrt, rsqrt_vjp);
const OpDef kSigmoid = elementwise_op("sigmoid", ScalarOp::sigmoid, sigmoid_vjp);
const OpDef kPow = elementwise_op("pow", ScalarOp::pow, pow_vjp);

LazyTensor logit_slope(const LazyTensor& x, const LazyTensor&) { return reciprocal(x * (1 - x)); }
const OpDef kLogit = ops::sloped<logit_slope>("logit");

}  // namespace

LazyTensor exp(const LazyTensor& x) { return elementwise(kExp, x); }
LazyTensor expm1(const LazyTensor& x) { return elementwise(kExpm1, x); }
LazyTensor exp2(const LazyTensor& x) { return elementwise(kExp2, x); }
LazyTensor log(const LazyTensor& x) { return elementwise(kLog, x); }
LazyTensor log1p(const LazyTensor& x) { return elementwise(kLog1p, x); }
LazyTensor log2(const LazyTensor& x) { return elementwise(kLog2, x); }
LazyTensor log10(const LazyTensor& x) { return elementwise(kLog10, x); }
LazyTensor sqrt(const LazyTensor& x) { return elementwise(kSqrt, x); }
LazyTensor rsqrt(const LazyTensor& x) { return elementwise(kRsqrt, x); }
LazyTensor sigmoid(const LazyTensor& x) { return elementwise(kSigmoid, x); }
LazyTensor pow(const LazyTensor& a, const LazyTensor& b) { return elementwise(kPow, a, b); }

LazyTensor hypot(const LazyTensor& a, const LazyTensor& b) {
  return real_function("hypot", a, b, [](const LazyTensor& x, const LazyTensor& y) {
    // The scale divides out, so it may count as a constant in differentiation.
    const LazyTensor longer = stop_gradient(maximum(abs(x), abs(y)));
    const LazyTensor usable = logical_and(longer > 0, longer < kInfinity);
    const LazyTensor scale = where(usable, longer, ones_like(longer));
    const LazyTensor square = caldera::square(x / scale) + caldera::square(y / scale);
    const LazyTensor is_zero = longer == 0;
    const LazyTensor root = scale * sqrt(where(is_zero, ones_like(square), square));
    const LazyTensor finite = where(is_zero, zeros_like(root), root);
    return where(logical_or(isinf(x), isinf(y)), full_like(root, kInfinity), finite);
  });
}

LazyTensor xlogy(const LazyTensor& x, const LazyTensor& y) {
  return real_function("xlogy", x, y, [](const LazyTensor& a, const LazyTensor& b) {
    const LazyTensor is_limit = logical_and(a == 0, logical_or(b <= 0, b == kInfinity));
    return a * log(where(is_limit, ones_like(b), b));
  });
}

LazyTensor logit(const LazyTensor& x, std::optional<double> eps) {
  if (eps && !(*eps >= 0 && *eps <= 0.5)) {
    throw ValueError(fmt::format("logit: eps is {}, but x is limited to [eps, 1 - eps]", *eps));
  }
  return real_function(x, [&](const LazyTensor& given) {
    const LazyTensor y = eps ? clip(given, *eps, 1 - *eps) : given;
    // Near 1/2 the logarithms cancel, but 2 y - 1 is exact.
    const LazyTensor middle = log1p((y + y - 1) / (1 - y));
    const LazyTensor value = where(abs(y - 0.5) < 0.25, middle, log(y) - log1p(-y));
    return ops::with_slope(kLogit, value, y);
  });
}

}  // namespace caldera
