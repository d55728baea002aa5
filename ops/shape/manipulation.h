// Tensors rearranged: other orders, parts, grids. Composites of movements: the parts are views, which cost
// nothing where the reader can follow strides. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// The elements along the axes (by default all) in reverse order.
LazyTensor flip(const LazyTensor& x, const Axes& axes = {});
/// The plane of two axes rotated k times by a quarter, from the first axis towards the second. ValueError
/// unless there are two.
LazyTensor rot90(const LazyTensor& x, std::int64_t k = 1, const Axes& axes = {0, 1});
/// The elements moved `shift` places on, those beyond the end to the front: in row-major order, or along each
/// of the axes. A negative shift moves them back.
LazyTensor roll(const LazyTensor& x, std::int64_t shift);
LazyTensor roll(const LazyTensor& x, std::int64_t shift, const Axes& axes);
/// A shift for each axis; those of an axis that is named twice add up. ValueError for another number of them.
LazyTensor roll(const LazyTensor& x, const std::vector<std::int64_t>& shifts, const Axes& axes);
/// The axes `source` moved to the places `destination`; the others keep their order.
LazyTensor moveaxis(const LazyTensor& x, const Axes& source, const Axes& destination);
/// The axes from `first` to `last` (inclusive) as one. A scalar gets one axis.
LazyTensor flatten(const LazyTensor& x, AxisIndex first = 0, AxisIndex last = -1);
/// An axis as several; one extent may be -1: it is inferred.
LazyTensor unflatten(const LazyTensor& x, AxisIndex axis, const Shape& extents);

/// The slices along an axis, without it: what stack() joins.
std::vector<LazyTensor> unstack(const LazyTensor& x, AxisIndex axis = 0);
/// Parts of `size` along an axis, the last with what is left.
std::vector<LazyTensor> split(const LazyTensor& x, std::int64_t size, AxisIndex axis = 0);
/// Parts of these sizes, which add up to the axis' extent.
std::vector<LazyTensor> split(const LazyTensor& x, const std::vector<std::int64_t>& sizes,
                              AxisIndex axis = 0);
/// At most `count` parts of equal size, the last with what is left (torch.chunk).
std::vector<LazyTensor> chunk(const LazyTensor& x, std::int64_t count, AxisIndex axis = 0);

/// Whether the first axis of a grid belongs to the first vector (ij) or to the second (xy, as in plots).
enum class GridIndexing { xy, ij };
/// The coordinates of a grid: each vector (or scalar) along an axis of its own, broadcast to the common
/// shape.
std::vector<LazyTensor> meshgrid(const std::vector<LazyTensor>& vectors,
                                 GridIndexing indexing = GridIndexing::xy);
/// All tensors broadcast to their common shape.
std::vector<LazyTensor> broadcast_arrays(const std::vector<LazyTensor>& tensors);

}  // namespace caldera
