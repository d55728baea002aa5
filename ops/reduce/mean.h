// Means over axes. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// Returns float32 for integers and booleans. NaN of no elements.
LazyTensor mean(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);

}  // namespace caldera
