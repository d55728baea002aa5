// Operands of an operation as they stand in its node: promoted, converted, broadcast.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ops/core/node_builder.h"

namespace caldera::ops {

/// x in `dtype`; a scalar leaf is remade, anything else is cast.
LazyTensor as_operand(const LazyTensor& x, DType dtype);
/// as_operand() of a number that counts as it is: throws ValueError naming `op` unless `dtype` holds it.
LazyTensor as_held_operand(std::string_view op, const LazyTensor& x, DType dtype);
/// A scalar leaf of exactly this dtype: throws ValueError naming `op` unless `dtype` holds the value.
LazyTensor held_scalar(std::string_view op, FillValue value, DType dtype);
/// Operands with the numbers among them as tensors of rank 0, of the type that they take beside the first
/// tensor and where it is. Numbers alone stay as they are.
std::vector<LazyTensor> as_tensors(std::string_view op, std::span<const LazyTensor> operands);
/// x broadcast to `shape`, except that scalar leaves stay as they are: element-wise operations take them
/// directly.
LazyTensor broadcast_operand(const LazyTensor& x, const Shape& shape);

/// Element-wise node: promotion, domain check, broadcasting.
LazyTensor elementwise(const OpDef& op, const LazyTensor& x);
LazyTensor elementwise(const OpDef& op, const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera::ops
