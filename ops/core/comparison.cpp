#include "ops/core/comparison.h"

#include "ops/core/elementwise_op.h"
#include "ops/core/operands.h"

namespace caldera {
namespace {

using ops::elementwise;
using ops::elementwise_op;

const OpDef kLogicalAnd = elementwise_op("logical_and", ScalarOp::logical_and);
const OpDef kLogicalOr = elementwise_op("logical_or", ScalarOp::logical_or);
const OpDef kLogicalXor = elementwise_op("logical_xor", ScalarOp::logical_xor);
const OpDef kLogicalNot = elementwise_op("logical_not", ScalarOp::logical_not);
const OpDef kEqual = elementwise_op("equal", ScalarOp::equal);
const OpDef kNotEqual = elementwise_op("not_equal", ScalarOp::not_equal);
const OpDef kLess = elementwise_op("less", ScalarOp::less);
const OpDef kLessEqual = elementwise_op("less_equal", ScalarOp::less_equal);
const OpDef kGreater = elementwise_op("greater", ScalarOp::greater);
const OpDef kGreaterEqual = elementwise_op("greater_equal", ScalarOp::greater_equal);
const OpDef kIsNan = elementwise_op("isnan", ScalarOp::isnan);

}  // namespace

LazyTensor logical_and(const LazyTensor& a, const LazyTensor& b) { return elementwise(kLogicalAnd, a, b); }
LazyTensor logical_or(const LazyTensor& a, const LazyTensor& b) { return elementwise(kLogicalOr, a, b); }
LazyTensor logical_xor(const LazyTensor& a, const LazyTensor& b) { return elementwise(kLogicalXor, a, b); }
LazyTensor logical_not(const LazyTensor& x) { return elementwise(kLogicalNot, x); }
LazyTensor equal(const LazyTensor& a, const LazyTensor& b) { return elementwise(kEqual, a, b); }
LazyTensor not_equal(const LazyTensor& a, const LazyTensor& b) { return elementwise(kNotEqual, a, b); }
LazyTensor less(const LazyTensor& a, const LazyTensor& b) { return elementwise(kLess, a, b); }
LazyTensor less_equal(const LazyTensor& a, const LazyTensor& b) { return elementwise(kLessEqual, a, b); }
LazyTensor greater(const LazyTensor& a, const LazyTensor& b) { return elementwise(kGreater, a, b); }
LazyTensor greater_equal(const LazyTensor& a, const LazyTensor& b) {
  return elementwise(kGreaterEqual, a, b);
}
LazyTensor isnan(const LazyTensor& x) { return elementwise(kIsNan, x); }

LazyTensor operator==(const LazyTensor& a, const LazyTensor& b) { return equal(a, b); }
LazyTensor operator!=(const LazyTensor& a, const LazyTensor& b) { return not_equal(a, b); }
LazyTensor operator<(const LazyTensor& a, const LazyTensor& b) { return less(a, b); }
LazyTensor operator<=(const LazyTensor& a, const LazyTensor& b) { return less_equal(a, b); }
LazyTensor operator>(const LazyTensor& a, const LazyTensor& b) { return greater(a, b); }
LazyTensor operator>=(const LazyTensor& a, const LazyTensor& b) { return greater_equal(a, b); }

}  // namespace caldera
