// Sorting and what is found by it. Orders are those of NumPy and PyTorch: NaN is the largest number, -0 and
// +0 are equal, and equal elements keep their order (ascending and descending alike). Part of ops/ops.h.
//
// The CPU finds the order of each row in one step, by digits or by comparing; elsewhere O(log^2 n)
// element-wise steps do (ops/sort/sorting_network.h). Positions are i32. Throw ShapeError for axes longer
// than 2^28; topk also for tensors without axes.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x in order along an axis. The gradient of each element goes to where it came from.
LazyTensor sort(const LazyTensor& x, AxisIndex axis = -1, bool descending = false);
/// The positions along the axis of what sort() gives.
LazyTensor argsort(const LazyTensor& x, AxisIndex axis = -1, bool descending = false);

struct TopK {
  LazyTensor values, indices;
};
/// The k largest (or smallest) elements along an axis, best first, and their positions. Of equal ones the
/// first are taken. Less work than sort(): on the CPU about one pass over x where k is small; elsewhere n
/// log^2 k, and up to 8 are found in one pass each. Throws ValueError unless 0 <= k <= n.
TopK topk(const LazyTensor& x, std::int64_t k, AxisIndex axis = -1, bool largest = true);

/// Finds where each value belongs in a sorted sequence: how many elements are less, with `right` not greater,
/// than it. `sorted` has one axis, or the axes of `values`, alike except for the last. Operands promote. With
/// a `sorter` of its shape (what argsort gives), `sorted` need not be in order: its element at each of these
/// positions along the last axis is taken in turn.
LazyTensor searchsorted(const LazyTensor& sorted, const LazyTensor& values, bool right = false,
                        const LazyTensor& sorter = {});

}  // namespace caldera
