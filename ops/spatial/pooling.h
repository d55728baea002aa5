// Pooling over 1, 2 or 3 spatial axes, PyTorch's layouts and conventions: composites of primitives. Part of
// ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "ops/spatial/spatial.h"

namespace caldera {

struct PoolOptions {
  Spatial stride = {};    // empty: the kernel's extents
  Spatial padding = {0};  // at most half of the kernel
  Spatial dilation = {1};
  bool count_include_pad = true;  // avg_pool: padding counts as zeros
  /// Windows that begin in x or its low padding count even if they end beyond the high padding; what is
  /// there is not pooled.
  bool ceil_mode = false;
};

/// The largest element of each window of x (N, C, D...), NaN if one is; of ties the first, which has the
/// gradient. Padding is never chosen.
LazyTensor max_pool(const LazyTensor& x, const Spatial& kernel, const PoolOptions& options = {});
/// The mean of each window.
LazyTensor avg_pool(const LazyTensor& x, const Spatial& kernel, const PoolOptions& options = {});

}  // namespace caldera
