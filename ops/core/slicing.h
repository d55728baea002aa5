// Slices, and padding, which undoes them in gradients. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x[..., start:stop:step, ...] along one axis, with Python's rules for negative and absent bounds.
/// ValueError for a step of 0.
LazyTensor slice(const LazyTensor& x, AxisIndex axis, std::optional<std::int64_t> start,
                 std::optional<std::int64_t> stop, std::int64_t step = 1);
/// Low and high margins per axis, and `interior` elements between neighbours (empty = none), filled with
/// `value`. Negative margins take elements away, of those between neighbours too. ShapeError where they take
/// more than there are.
LazyTensor pad(const LazyTensor& x, const std::vector<std::int64_t>& low,
               const std::vector<std::int64_t>& high, FillValue value = 0,
               const std::vector<std::int64_t>& interior = {});

}  // namespace caldera

namespace caldera::ops {

/// The `count` elements first, first + step, ... of an axis.
struct SliceRange {
  std::int64_t first, count, step;
};

/// Returns what a slice takes of an axis of `extent` elements, by Python's rules. The step is at most the
/// extent, or 1 where that is 0, in magnitude; `first` is 0 where nothing is taken. Throws ValueError naming
/// `op` for a step of 0.
SliceRange range_of(std::string_view op, const Slice& slice, int axis, std::int64_t extent);

/// pad() with zeros, which the compiler knows to be zeros: sums of such with disjoint contents are
/// concatenations. For gradients of slices.
LazyTensor pad_with_zeros(const LazyTensor& x, const std::vector<std::int64_t>& low,
                          const std::vector<std::int64_t>& high, const std::vector<std::int64_t>& interior);

/// slice() of an axis that is counted from the front, on behalf of the operation `op`.
LazyTensor slice_as(std::string_view op, const LazyTensor& x, int axis, const Slice& part);

/// x[..., start : start + count * step : step, ...] along one axis, without Python's conventions.
LazyTensor window(const LazyTensor& x, int axis, std::int64_t start, std::int64_t count, std::int64_t step);

}  // namespace caldera::ops
