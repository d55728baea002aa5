#include "ops/core/selection.h"

#include <fmt/core.h>

#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"

namespace caldera {
namespace {

using Context = VjpContext;

/// Shares of two operands of which the larger (smaller) one passes: 1, 0, or one half each for ties.
LazyTensor winner(const LazyTensor& wins, const LazyTensor& ties, const LazyTensor& g) {
  return where(wins, g, where(ties, g * 0.5, zeros_like(g)));
}
void maximum_vjp(Context& c) {
  const LazyTensor ties = c.inputs[0] == c.inputs[1];
  if (c.needed[0]) c.grads[0] = winner(c.inputs[0] > c.inputs[1], ties, c.cotangent);
  if (c.needed[1]) c.grads[1] = winner(c.inputs[1] > c.inputs[0], ties, c.cotangent);
}
void minimum_vjp(Context& c) {
  const LazyTensor ties = c.inputs[0] == c.inputs[1];
  if (c.needed[0]) c.grads[0] = winner(c.inputs[0] < c.inputs[1], ties, c.cotangent);
  if (c.needed[1]) c.grads[1] = winner(c.inputs[1] < c.inputs[0], ties, c.cotangent);
}
void where_vjp(Context& c) {
  if (c.needed[1]) c.grads[1] = where(c.inputs[0], c.cotangent, zeros_like(c.cotangent));
  if (c.needed[2]) c.grads[2] = where(c.inputs[0], zeros_like(c.cotangent), c.cotangent);
}

const OpDef kMaximum = ops::elementwise_op("maximum", ScalarOp::maximum, maximum_vjp);
const OpDef kMinimum = ops::elementwise_op("minimum", ScalarOp::minimum, minimum_vjp);
const OpDef kWhere = ops::elementwise_op("where", ScalarOp::select, where_vjp);

}  // namespace

LazyTensor maximum(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kMaximum, a, b); }
LazyTensor minimum(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kMinimum, a, b); }

LazyTensor where(const LazyTensor& condition, const LazyTensor& a, const LazyTensor& b) {
  if (condition.dtype() != DType::boolean) {
    throw DTypeError(fmt::format("where: the condition must be bool, got {}; compare it with something",
                                 name(condition.dtype())));
  }
  const DType dtype = promote(ops::dtype_beside(a, b), ops::dtype_beside(b, a));
  const Shape shape =
      broadcast_shapes(condition.shape(), broadcast_shapes(a.shape(), b.shape(), "where"), "where");
  return ops::make(kWhere, shape, dtype,
                   {ops::broadcast_operand(condition, shape),
                    ops::broadcast_operand(ops::as_held_operand("where", a, dtype), shape),
                    ops::broadcast_operand(ops::as_held_operand("where", b, dtype), shape)});
}

}  // namespace caldera
