#include "ops/elementwise/bitwise.h"

#include <vector>

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

constexpr OpDef of_bits(std::string_view name, ScalarOp function) {
  return {.name = name, .kind = OpClass::elementwise, .scalar = function, .zero_gradient = true};
}

const OpDef kAnd = of_bits("bitwise_and", ScalarOp::bit_and);
const OpDef kOr = of_bits("bitwise_or", ScalarOp::bit_or);
const OpDef kXor = of_bits("bitwise_xor", ScalarOp::bit_xor);
const OpDef kInvert = of_bits("bitwise_invert", ScalarOp::bit_not);
const OpDef kLeftShift = of_bits("bitwise_left_shift", ScalarOp::shift_left);
const OpDef kRightShift = of_bits("bitwise_right_shift", ScalarOp::shift_right);

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
