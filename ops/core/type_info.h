// Tells what types hold and what two of them become together: the data type functions of the Python Array
// API. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The type of an operation on operands of these types. ValueError for none.
DType result_type(std::initializer_list<DType> types);
/// The type of an operation on two tensors, or on a tensor and a number.
DType result_type(const LazyTensor& a, const LazyTensor& b);
/// Whether promotion leads from one type to the other: whether values of `from` may stand next to those of
/// `to` without changing their type.
bool can_cast(DType from, DType to);
bool can_cast(const LazyTensor& from, DType to);

enum class TypeKind { boolean, signed_integer, unsigned_integer, integral, real_floating, numeric };
bool isdtype(DType dtype, TypeKind kind);

struct FloatInfo {
  DType dtype;
  int bits;
  double eps;  // from 1 to the next number
  double max, min;
  double smallest_normal;
};
/// DTypeError for what is not floating.
FloatInfo finfo(DType dtype);

struct IntegerInfo {
  DType dtype;
  int bits;
  std::int64_t max, min;
};
/// DTypeError for what is not integral.
IntegerInfo iinfo(DType dtype);

}  // namespace caldera
