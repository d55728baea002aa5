#include "ops/elementwise/sign.h"

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::elementwise_op;

void copysign_vjp(VjpContext& c) {
  if (c.needed[0])
    c.grads[0] = c.cotangent * sign(c.inputs[0]) * copysign(ones_like(c.cotangent), c.inputs[1]);
  if (c.needed[1]) c.grads[1] = zeros_like(c.cotangent);
}

const OpDef kCopysign = elementwise_op("copysign", ScalarOp::copysign, copysign_vjp);

}  // namespace

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
