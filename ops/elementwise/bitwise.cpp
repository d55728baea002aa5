#include "ops/elementwise/bitwise.h"

#include <vector>

#include "ops/core/comparison.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/operands.h"

namespace caldera {
namespace {

const OpDef kAnd = ops::elementwise_op("bitwise_and", ScalarOp::bit_and);
const OpDef kOr = ops::elementwise_op("bitwise_or", ScalarOp::bit_or);
const OpDef kXor = ops::elementwise_op("bitwise_xor", ScalarOp::bit_xor);
const OpDef kInvert = ops::elementwise_op("bitwise_invert", ScalarOp::bit_not);
const OpDef kLeftShift = ops::elementwise_op("bitwise_left_shift", ScalarOp::shift_left);
const OpDef kRightShift = ops::elementwise_op("bitwise_right_shift", ScalarOp::shift_right);

/// A bool is one bit: the logical operation.
LazyTensor on_bits(const OpDef& op, LazyTensor (*logical)(const LazyTensor&, const LazyTensor&),
                   const LazyTensor& a, const LazyTensor& b) {
  const bool boolean = a.dtype() == DType::boolean && b.dtype() == DType::boolean;
  return boolean ? logical(a, b) : ops::elementwise(op, a, b);
}

}  // namespace

LazyTensor bitwise_and(const LazyTensor& a, const LazyTensor& b) { return on_bits(kAnd, logical_and, a, b); }
LazyTensor bitwise_or(const LazyTensor& a, const LazyTensor& b) { return on_bits(kOr, logical_or, a, b); }
LazyTensor bitwise_xor(const LazyTensor& a, const LazyTensor& b) { return on_bits(kXor, logical_xor, a, b); }
LazyTensor bitwise_invert(const LazyTensor& x) {
  return x.dtype() == DType::boolean ? logical_not(x) : ops::elementwise(kInvert, x);
}
LazyTensor bitwise_left_shift(const LazyTensor& x, const LazyTensor& count) {
  return ops::elementwise(kLeftShift, x, count);
}
LazyTensor bitwise_right_shift(const LazyTensor& x, const LazyTensor& count) {
  return ops::elementwise(kRightShift, x, count);
}

}  // namespace caldera
