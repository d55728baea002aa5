#include "ops/elementwise/exponential.h"

#include <fmt/core.h>

#include <limits>
#include <numbers>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::elementwise;
using ops::elementwise_op;
using ops::real_function;
using std::numbers::ln2;
using Context = VjpContext;

void exp_vjp(Context& c) { c.grads[0] = c.cotangent * c.output; }
// Not output + 1, which cancels far below 0.
void expm1_vjp(Context& c) { c.grads[0] = c.cotangent * exp(c.inputs[0]); }
void exp2_vjp(VjpContext& c) { c.grads[0] = c.cotangent * (c.output * ln2); }
void log_vjp(Context& c) { c.grads[0] = c.cotangent / c.inputs[0]; }
void log1p_vjp(Context& c) { c.grads[0] = c.cotangent / (c.inputs[0] + 1); }
void log2_vjp(VjpContext& c) { c.grads[0] = c.cotangent * std::numbers::log2e / c.inputs[0]; }
void log10_vjp(VjpContext& c) { c.grads[0] = c.cotangent * std::numbers::log10e / c.inputs[0]; }
void sigmoid_vjp(Context& c) { c.grads[0] = c.cotangent * (c.output * (1 - c.output)); }

const OpDef kExp = elementwise_op("exp", ScalarOp::exp, exp_vjp);
const OpDef kExpm1 = elementwise_op("expm1", ScalarOp::expm1, expm1_vjp);
const OpDef kExp2 = elementwise_op("exp2", ScalarOp::exp2, exp2_vjp);
const OpDef kLog = elementwise_op("log", ScalarOp::log, log_vjp);
const OpDef kLog1p = elementwise_op("log1p", ScalarOp::log1p, log1p_vjp);
const OpDef kLog2 = elementwise_op("log2", ScalarOp::log2, log2_vjp);
const OpDef kLog10 = elementwise_op("log10", ScalarOp::log10, log10_vjp);
const OpDef kSigmoid = elementwise_op("sigmoid", ScalarOp::sigmoid, sigmoid_vjp);

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
LazyTensor sigmoid(const LazyTensor& x) { return elementwise(kSigmoid, x); }

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
