#include "ops/core/arithmetic.h"

#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"

namespace caldera {
namespace {

using ops::elementwise;
using ops::elementwise_op;
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
void neg_vjp(Context& c) { c.grads[0] = -c.cotangent; }
void abs_vjp(Context& c) { c.grads[0] = c.cotangent * sign(c.inputs[0]); }
void reciprocal_vjp(Context& c) { c.grads[0] = -(c.cotangent * (c.output * c.output)); }

const OpDef kAdd = elementwise_op("add", ScalarOp::add, add_vjp);
const OpDef kSubtract = elementwise_op("subtract", ScalarOp::sub, subtract_vjp);
const OpDef kMultiply = elementwise_op("multiply", ScalarOp::mul, multiply_vjp);
const OpDef kDivide = elementwise_op("divide", ScalarOp::div, divide_vjp);
const OpDef kFloorDivide = elementwise_op("floor_divide", ScalarOp::floor_div);
const OpDef kRemainder = elementwise_op("remainder", ScalarOp::remainder, remainder_vjp);
const OpDef kNeg = elementwise_op("negative", ScalarOp::neg, neg_vjp);
const OpDef kAbs = elementwise_op("abs", ScalarOp::abs, abs_vjp);
const OpDef kSign = elementwise_op("sign", ScalarOp::sign);
const OpDef kReciprocal = elementwise_op("reciprocal", ScalarOp::reciprocal, reciprocal_vjp);

}  // namespace

LazyTensor add(const LazyTensor& a, const LazyTensor& b) { return elementwise(kAdd, a, b); }
LazyTensor subtract(const LazyTensor& a, const LazyTensor& b) { return elementwise(kSubtract, a, b); }
LazyTensor multiply(const LazyTensor& a, const LazyTensor& b) { return elementwise(kMultiply, a, b); }
LazyTensor divide(const LazyTensor& a, const LazyTensor& b) { return elementwise(kDivide, a, b); }
LazyTensor floor_divide(const LazyTensor& a, const LazyTensor& b) { return elementwise(kFloorDivide, a, b); }
LazyTensor remainder(const LazyTensor& a, const LazyTensor& b) { return elementwise(kRemainder, a, b); }
LazyTensor negative(const LazyTensor& x) { return elementwise(kNeg, x); }
LazyTensor abs(const LazyTensor& x) { return elementwise(kAbs, x); }
LazyTensor sign(const LazyTensor& x) { return elementwise(kSign, x); }
LazyTensor positive(const LazyTensor& x) {
  ops::check_domain("positive", ScalarDomain::numeric, x.dtype());
  return x;
}
LazyTensor reciprocal(const LazyTensor& x) { return elementwise(kReciprocal, x); }
LazyTensor square(const LazyTensor& x) {
  ops::check_domain("square", ScalarDomain::numeric, x.dtype());
  return x * x;
}

LazyTensor operator+(const LazyTensor& a, const LazyTensor& b) { return elementwise(kAdd, a, b); }
LazyTensor operator-(const LazyTensor& a, const LazyTensor& b) { return elementwise(kSubtract, a, b); }
LazyTensor operator*(const LazyTensor& a, const LazyTensor& b) { return elementwise(kMultiply, a, b); }
LazyTensor operator/(const LazyTensor& a, const LazyTensor& b) { return elementwise(kDivide, a, b); }
LazyTensor operator-(const LazyTensor& x) { return negative(x); }

}  // namespace caldera
