// Pooling over 1, 2 or 3 spatial axes, PyTorch's layouts and conventions: composites of primitives. Part of
// ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>

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
  /// avg_pool: what sums of windows are divided by, instead of their numbers of elements. Not 0.
  std::optional<std::int64_t> divisor_override = {};
};

/// The largest element of each window of x (N, C, D...), NaN if one is; of ties the first, which has the
/// gradient. Padding is never chosen.
LazyTensor max_pool(const LazyTensor& x, const Spatial& kernel, const PoolOptions& options = {});
/// The mean of each window.
LazyTensor avg_pool(const LazyTensor& x, const Spatial& kernel, const PoolOptions& options = {});
/// (sum of x^p over each window)^(1 / p), times what avg_pool() divides windows at the end of ceil_mode by
/// less (torch.nn.functional.lp_pool2d). NaN where the sum is negative and 1 / p no integer. There is no
/// padding and no dilation; ValueError for those, and unless p is finite and not 0.
LazyTensor lp_pool(const LazyTensor& x, double p, const Spatial& kernel, const PoolOptions& options = {});

/// Pairs the largest elements with where they are.
struct IndexedMaxResult {
  LazyTensor values;
  LazyTensor indices;  // i32, in row-major order of the spatial axes of one channel
};
/// max_pool(), and where each of its elements is in its channel. Throws ShapeError for channels that int32
/// does not count.
IndexedMaxResult max_pool_with_indices(const LazyTensor& x, const Spatial& kernel,
                                       const PoolOptions& options = {});

struct UnpoolOptions {
  Spatial stride = {};  // empty: the kernel's extents
  Spatial padding = {0};
  Spatial output_size = {};  // spatial extents; empty: (D - 1) stride - 2 padding + kernel
};
/// Zeros, with the elements of x (N, C, D...) at `indices`, of its shape, which max_pool_with_indices()
/// gives. Of elements with one index the last is left, and has the gradient; those with an index outside are
/// dropped (PyTorch refuses them).
LazyTensor max_unpool(const LazyTensor& x, const LazyTensor& indices, const Spatial& kernel,
                      const UnpoolOptions& options = {});

}  // namespace caldera
