// Element-wise functions of two operands and selection, with their gradients.
#include <fmt/core.h>

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

using Context = VjpContext;

void add_vjp(Context& c) {
  c.grads[0] = c.cotangent;
  c.grads[1] = c.cotangent;
}
void subtract_vjp(Context& c) {
  c.grads[0] = c.cotangent;
  if (c.needed[1]) c.grads[1] = -c.cotangent;
}
void multiply_vjp(Context& c) {
  if (c.needed[0]) c.grads[0] = c.cotangent * c.inputs[1];
  if (c.needed[1]) c.grads[1] = c.cotangent * c.inputs[0];
}
void divide_vjp(Context& c) {
  if (c.needed[0]) c.grads[0] = c.cotangent / c.inputs[1];
  if (c.needed[1]) c.grads[1] = -(c.cotangent * c.output / c.inputs[1]);
}
void remainder_vjp(Context& c) {
  if (c.needed[0]) c.grads[0] = c.cotangent;
  if (c.needed[1]) c.grads[1] = -(c.cotangent * floor_divide(c.inputs[0], c.inputs[1]));
}
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
void atan2_vjp(Context& c) {
  const LazyTensor y = ops::anchored(c.inputs[0], c.output.device());
  const LazyTensor x = ops::anchored(c.inputs[1], c.output.device());
  const LazyTensor scaled = c.cotangent / (x * x + y * y);
  if (c.needed[0]) c.grads[0] = scaled * x;
  if (c.needed[1]) c.grads[1] = -(scaled * y);
}
void where_vjp(Context& c) {
  if (c.needed[1]) c.grads[1] = where(c.inputs[0], c.cotangent, zeros_like(c.cotangent));
  if (c.needed[2]) c.grads[2] = where(c.inputs[0], zeros_like(c.cotangent), c.cotangent);
}

constexpr OpDef binary(std::string_view name, ScalarOp function, VjpRule vjp = nullptr) {
  return {.name = name,
          .kind = OpClass::elementwise,
          .scalar = function,
          .vjp = vjp,
          .zero_gradient = vjp == nullptr};
}

const OpDef kAdd = binary("add", ScalarOp::add, add_vjp);
const OpDef kSubtract = binary("subtract", ScalarOp::sub, subtract_vjp);
const OpDef kMultiply = binary("multiply", ScalarOp::mul, multiply_vjp);
const OpDef kDivide = binary("divide", ScalarOp::div, divide_vjp);
const OpDef kFloorDivide = binary("floor_divide", ScalarOp::floor_div);
const OpDef kRemainder = binary("remainder", ScalarOp::remainder, remainder_vjp);
const OpDef kPow = binary("pow", ScalarOp::pow, pow_vjp);
const OpDef kMaximum = binary("maximum", ScalarOp::maximum, maximum_vjp);
const OpDef kMinimum = binary("minimum", ScalarOp::minimum, minimum_vjp);
const OpDef kAtan2 = binary("atan2", ScalarOp::atan2, atan2_vjp);
const OpDef kLogicalAnd = binary("logical_and", ScalarOp::logical_and);
const OpDef kLogicalOr = binary("logical_or", ScalarOp::logical_or);
const OpDef kLogicalXor = binary("logical_xor", ScalarOp::logical_xor);
const OpDef kEqual = binary("equal", ScalarOp::equal);
const OpDef kNotEqual = binary("not_equal", ScalarOp::not_equal);
const OpDef kLess = binary("less", ScalarOp::less);
const OpDef kLessEqual = binary("less_equal", ScalarOp::less_equal);
const OpDef kGreater = binary("greater", ScalarOp::greater);
const OpDef kGreaterEqual = binary("greater_equal", ScalarOp::greater_equal);
const OpDef kWhere = binary("where", ScalarOp::select, where_vjp);

}  // namespace

LazyTensor add(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kAdd, a, b); }
LazyTensor subtract(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kSubtract, a, b); }
LazyTensor multiply(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kMultiply, a, b); }
LazyTensor divide(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kDivide, a, b); }
LazyTensor floor_divide(const LazyTensor& a, const LazyTensor& b) {
  return ops::elementwise(kFloorDivide, a, b);
}
LazyTensor remainder(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kRemainder, a, b); }
LazyTensor pow(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kPow, a, b); }
LazyTensor maximum(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kMaximum, a, b); }
LazyTensor minimum(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kMinimum, a, b); }
LazyTensor atan2(const LazyTensor& y, const LazyTensor& x) { return ops::elementwise(kAtan2, y, x); }
LazyTensor logical_and(const LazyTensor& a, const LazyTensor& b) {
  return ops::elementwise(kLogicalAnd, a, b);
}
LazyTensor logical_or(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kLogicalOr, a, b); }
LazyTensor logical_xor(const LazyTensor& a, const LazyTensor& b) {
  return ops::elementwise(kLogicalXor, a, b);
}
LazyTensor equal(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kEqual, a, b); }
LazyTensor not_equal(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kNotEqual, a, b); }
LazyTensor less(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kLess, a, b); }
LazyTensor less_equal(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kLessEqual, a, b); }
LazyTensor greater(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kGreater, a, b); }
LazyTensor greater_equal(const LazyTensor& a, const LazyTensor& b) {
  return ops::elementwise(kGreaterEqual, a, b);
}

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
