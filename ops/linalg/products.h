// Products of tensors beyond matmul, and what goes with matrices: composites of primitives. Part of
// ops/ops.h.
#pragma once

#include <concepts>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

// einsum, tensordot and vecdot take numbers, promote them, and give that type, as matmul does: sums of narrow
// integers wrap.

/// Einstein's summation convention, as in NumPy: "ij,jk->ik". Labels are letters; "..." stands for axes that
/// broadcast, and are summed over where the result has none; a label repeated in one operand takes the
/// diagonal; without "->" the labels that appear once, in alphabetical order, remain. Each operand is
/// contracted with the result of those before it by one matrix product. Throws ValueError for what is no
/// equation, ShapeError where extents do not fit.
LazyTensor einsum(std::string_view equation, const std::vector<LazyTensor>& operands);

/// Sums products over the last `axes` axes of a and the first of b.
LazyTensor tensordot(const LazyTensor& a, const LazyTensor& b, int axes = 2);
/// Sums products over the paired axes, whose extents are equal. What remains of a comes ahead of what remains
/// of b.
LazyTensor tensordot(const LazyTensor& a, const LazyTensor& b,
                     const std::pair<std::vector<int>, std::vector<int>>& axes);
/// sum(a * b) over one axis, which has the same extent in both; the others broadcast. Of different ranks it
/// is counted from the end: -1 ...
LazyTensor vecdot(const LazyTensor& a, const LazyTensor& b, AxisIndex axis = -1);
/// a[i] * b[j] for vectors a and b.
LazyTensor outer(const LazyTensor& a, const LazyTensor& b);
/// The cross product of vectors of 3 along the axis; the others broadcast.
LazyTensor cross(const LazyTensor& a, const LazyTensor& b, AxisIndex axis = -1);

/// The sums of the diagonals of the last two axes, of the types that sum() gives; with a dtype the elements
/// are cast to it first, and the sums are of it.
LazyTensor trace(const LazyTensor& x, std::int64_t offset = 0);
LazyTensor trace(const LazyTensor& x, std::int64_t offset, DType dtype);

/// (sum |x|^ord)^(1/ord) over the axes. ord: infinity is the largest |x|, -infinity the smallest, 0 counts
/// what is not 0. The gradient at 0 is 0. Powers other than 2 neither overflow nor vanish where the
/// norm does not. ShapeError for the largest or smallest of no elements.
LazyTensor vector_norm(const LazyTensor& x, const Axes& axes = {}, double ord = 2, bool keepdims = false);
/// Takes a floating number after x for ord, as PyTorch and NumPy do: vector_norm(x, -1.0). An integer there
/// is an axis.
template <std::floating_point Order>
LazyTensor vector_norm(const LazyTensor& x, Order ord, const Axes& axes = {}, bool keepdims = false) {
  return vector_norm(x, axes, static_cast<double>(ord), keepdims);
}
/// Is refused: keepdims comes after ord.
template <std::same_as<bool> Keepdims>
LazyTensor vector_norm(const LazyTensor& x, const Axes& axes, Keepdims keepdims) = delete;

}  // namespace caldera
