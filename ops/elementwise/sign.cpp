#include "ops/elementwise/sign.h"

#include <limits>

#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::elementwise_op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void abs_vjp(VjpContext& c) { c.grads[0] = c.cotangent * sign(c.inputs[0]); }
void copysign_vjp(VjpContext& c) {
  if (c.needed[0])
    c.grads[0] = c.cotangent * sign(c.inputs[0]) * copysign(ones_like(c.cotangent), c.inputs[1]);
  if (c.needed[1]) c.grads[1] = zeros_like(c.cotangent);
}

const OpDef kAbs = elementwise_op("abs", ScalarOp::abs, abs_vjp);
const OpDef kSign = elementwise_op("sign", ScalarOp::sign);
const OpDef kCopysign = elementwise_op("copysign", ScalarOp::copysign, copysign_vjp);

}  // namespace

LazyTensor abs(const LazyTensor& x) { return ops::elementwise(kAbs, x); }
LazyTensor sign(const LazyTensor& x) { return ops::elementwise(kSign, x); }
LazyTensor positive(const LazyTensor& x) {
  ops::check_domain("positive", ScalarDomain::numeric, x.dtype());
  return x;
}
LazyTensor copysign(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kCopysign, a, b); }
LazyTensor signbit(const LazyTensor& x) {
  ops::check_domain("signbit", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? copysign(ones_like(x), x) < 0 : x < 0;
}
LazyTensor isfinite(const LazyTensor& x) {
  ops::check_domain("isfinite", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? abs(x) < kInfinity : x == x;
}
LazyTensor isinf(const LazyTensor& x) {
  ops::check_domain("isinf", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? abs(x) == kInfinity : x != x;
}

LazyTensor heaviside(const LazyTensor& x, const LazyTensor& values) {
  return ops::numeric_function("heaviside", x, values, [](const LazyTensor& y, const LazyTensor& at_zero) {
    return where(y > 0, 1, where(y < 0, 0, where(y == 0, at_zero, stop_gradient(y))));
  });
}

}  // namespace caldera
