// Elements repeated, seen through windows, and their differences. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x repeated as a whole, `repetitions` times along each axis. The shorter of the shape and the repetitions
/// gets leading ones. ValueError for negative repetitions.
LazyTensor tile(const LazyTensor& x, const std::vector<std::int64_t>& repetitions);
/// Each element repeated `count` times along an axis, or without one all in row-major order, as a vector.
LazyTensor repeat(const LazyTensor& x, std::int64_t count, std::optional<AxisIndex> axis = {});
/// A count for each element along the axis (or one for all). ShapeError for another number of counts.
LazyTensor repeat(const LazyTensor& x, const std::vector<std::int64_t>& counts,
                  std::optional<AxisIndex> axis = {});

/// Windows of `size` elements along an axis, `step` apart: the axis counts the windows, a new last axis their
/// elements (Tensor.unfold of PyTorch). ShapeError if not even one fits.
LazyTensor unfold(const LazyTensor& x, AxisIndex axis, std::int64_t size, std::int64_t step = 1);
/// Differences of neighbours along an axis, `n` times over, with `prepend` before and `append` behind x if
/// given; of booleans whether they differ. x itself where n is 0, as in NumPy.
LazyTensor diff(const LazyTensor& x, std::int64_t n = 1, AxisIndex axis = -1, const LazyTensor& prepend = {},
                const LazyTensor& append = {});

}  // namespace caldera
