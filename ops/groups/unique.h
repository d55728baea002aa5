// Which values there are, and where: elements grouped by what they are. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct UniqueResult {
  LazyTensor values;   // one of each, whose gradient goes to its first element in x
  LazyTensor inverse;  // i32, x's shape: which of the values each element is
  LazyTensor counts;   // i32: how many elements each value has
  LazyTensor size;     // i32, rank 0: how many values there are, of which the others may show fewer
};

/// The values of all elements, ascending, NaN last and each for itself (as in PyTorch). How many there are is
/// computed and read at the call, which waits for it.
UniqueResult unique(const LazyTensor& x);
/// Gives the first `size` values, and `fill` (counted 0 times) where there are fewer: nothing is computed
/// yet, so that it may stand in compiled and mapped functions. ValueError for a negative size.
UniqueResult unique(const LazyTensor& x, std::int64_t size, FillValue fill = 0);

/// The different slices along an axis, as unique() has elements: ascending by their first elements, then by
/// the next (in row-major order), slices with NaN each for itself. `values` has them along the axis; inverse
/// and counts are (slices).
UniqueResult unique_along(const LazyTensor& x, AxisIndex axis);
UniqueResult unique_along(const LazyTensor& x, AxisIndex axis, std::int64_t size, FillValue fill = 0);
/// One slice for each run of equal neighbours along the axis.
UniqueResult unique_consecutive_along(const LazyTensor& x, AxisIndex axis);
UniqueResult unique_consecutive_along(const LazyTensor& x, AxisIndex axis, std::int64_t size,
                                      FillValue fill = 0);

/// One value for each run of equal neighbours in row-major order; waits as unique() does.
UniqueResult unique_consecutive(const LazyTensor& x);
UniqueResult unique_consecutive(const LazyTensor& x, std::int64_t size, FillValue fill = 0);

}  // namespace caldera
