// Pooling to given extents, whatever those of x are. Part of ops/ops.h.
//
// Window i of `to` along an axis of `from` elements goes from floor(i from / to) to ceil((i + 1) from / to),
// as in PyTorch: neighbours may overlap by one element. Extents are one for every spatial axis or one each;
// -1 keeps that of x (PyTorch's None). x is (N, C, D...) of 1 to 3 spatial axes, none of them empty
// (ShapeError).
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "ops/spatial/pooling.h"
#include "ops/spatial/spatial.h"

namespace caldera {

/// The mean of each window.
LazyTensor adaptive_avg_pool(const LazyTensor& x, const Spatial& output_size);
/// The largest element of each window, NaN if one is; of ties the first, which has the gradient.
LazyTensor adaptive_max_pool(const LazyTensor& x, const Spatial& output_size);
/// adaptive_max_pool(), and where each of its elements is in its channel.
IndexedMaxResult adaptive_max_pool_with_indices(const LazyTensor& x, const Spatial& output_size);

}  // namespace caldera
