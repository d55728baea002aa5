#include "ops/elementwise/power.h"

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/sign.h"

namespace caldera {
namespace {

using ops::elementwise;
using ops::elementwise_op;
using ops::real_function;
using Context = VjpContext;

void sqrt_vjp(Context& c) { c.grads[0] = c.cotangent * 0.5 / c.output; }
void rsqrt_vjp(Context& c) { c.grads[0] = c.cotangent * (-0.5 * (c.output * c.output * c.output)); }
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

const OpDef kSqrt = elementwise_op("sqrt", ScalarOp::sqrt, sqrt_vjp);
const OpDef kRsqrt = elementwise_op("rsqrt", ScalarOp::rsqrt, rsqrt_vjp);
const OpDef kPow = elementwise_op("pow", ScalarOp::pow, pow_vjp);

}  // namespace

LazyTensor sqrt(const LazyTensor& x) { return elementwise(kSqrt, x); }
LazyTensor rsqrt(const LazyTensor& x) { return elementwise(kRsqrt, x); }
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

}  // namespace caldera
