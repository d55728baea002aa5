// take() with other rules for indices outside, and writing by flat positions and along axes. Part of
// ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Names what becomes of an index outside of its axis: counted on from the other end (so that -1 is the
/// last), or the nearest that is inside. (take() without a rule gives NaN, or 0.)
enum class OutsideIndex : std::uint8_t { wrap, clip };
/// take() with such a rule: numpy.take's modes. ShapeError for an axis without elements.
LazyTensor take(const LazyTensor& x, const LazyTensor& indices, AxisIndex axis, OutsideIndex outside);

/// x with values at positions in row-major order; negative ones count from the end, those outside are
/// dropped. Values broadcast to the indices. Of those with one index the last is left, or `how` combines them
/// with what is there (torch.put).
LazyTensor put(const LazyTensor& x, const LazyTensor& indices, const LazyTensor& values,
               Scatter how = Scatter::set);

/// x with `value`, a number or a tensor of rank 0, wherever the coordinate along the axis is one of the
/// indices, of at most one axis; negative ones count from the end, those outside are dropped.
LazyTensor index_fill(const LazyTensor& x, AxisIndex axis, const LazyTensor& indices,
                      const LazyTensor& value);

}  // namespace caldera
