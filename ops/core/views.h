// Views: the same elements in another shape or order. They cost nothing where the reader can follow strides.
// Part of ops/ops.h.
#pragma once

#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// One extent may be -1: it is inferred.
LazyTensor reshape(const LazyTensor& x, const Shape& shape);
/// Reorders the axes: out.shape[i] = x.shape[axes[i]].
LazyTensor permute_dims(const LazyTensor& x, const std::vector<int>& axes);
/// Swaps the last two axes.
LazyTensor transpose(const LazyTensor& x);
LazyTensor swapaxes(const LazyTensor& x, AxisIndex a, AxisIndex b);
/// Without these axes, whose extents have to be 1; by default without all that are.
LazyTensor squeeze(const LazyTensor& x, const Axes& axes = {});
LazyTensor expand_dims(const LazyTensor& x, AxisIndex axis);

}  // namespace caldera
