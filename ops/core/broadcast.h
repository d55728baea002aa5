// broadcast_to, and what undoes it in gradients: the sum. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// x repeated along the axes in which it has an extent of 1 where `shape` has more, and along new axes in
/// front. Nothing is copied. ShapeError where the shapes do not allow it.
LazyTensor broadcast_to(const LazyTensor& x, const Shape& shape);

}  // namespace caldera

namespace caldera::ops {

/// A reduction by `op` over the axes, in the type of x.
LazyTensor reduced_along(const OpDef& op, const LazyTensor& x, const Axes& axes, bool keepdims);
/// The sum in the type of x: sum() without its choice of types.
LazyTensor sum_along(const LazyTensor& x, const Axes& axes, bool keepdims);

}  // namespace caldera::ops
