// The largest and the smallest elements over axes, and where they are. Part of ops/ops.h.
#pragma once

#include <optional>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// NaN if any element is. Of ties along one axis the first has the gradient; among those over several or all
/// axes it is split equally. (So do max(dim) and max() of PyTorch.)
LazyTensor max(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor min(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
/// Returns the values of max; the gradient is always split equally among ties.
LazyTensor amax(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor amin(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
/// The index (i32) of the first largest or smallest element along the axis, or without one among all elements
/// in row-major order. The first NaN counts as both. Throws ShapeError where there is nothing to choose from.
LazyTensor argmax(const LazyTensor& x, std::optional<AxisIndex> axis = {}, bool keepdims = false);
LazyTensor argmin(const LazyTensor& x, std::optional<AxisIndex> axis = {}, bool keepdims = false);

}  // namespace caldera
