// Vectors made unit ones, and distances of all pairs of vectors. Part of ops/ops.h.
//
// Floating types only (DTypeError); 16-bit types are computed in float32. p is a number, 0 or more, or
// infinity (ValueError).
#pragma once

#include <concepts>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

LazyTensor normalized(const LazyTensor& x, double p, int axis, double eps);

}  // namespace caldera::ops

namespace caldera {

/// x over its p-norm along an axis, or over eps where that is larger. Takes tensors alone: numbers in braces
/// are for vision::normalize.
template <std::same_as<LazyTensor> Tensor>
LazyTensor normalize(const Tensor& x, double p = 2, AxisIndex axis = 1, double eps = 1e-12) {
  return ops::normalized(x, p, axis, eps);
}
/// The p-norms of all differences a[..., i, :] - b[..., j, :]: of (..., P, M) and (..., R, M) it is (..., P,
/// R). Leading axes broadcast. The gradient where a distance is 0 is 0. ShapeError where vectors differ in
/// length.
LazyTensor cdist(const LazyTensor& a, const LazyTensor& b, double p = 2);
/// The distances of all pairs i < j of the rows of x (N, M), as a vector: (0, 1), (0, 2), ... (1, 2), ...
LazyTensor pdist(const LazyTensor& x, double p = 2);

}  // namespace caldera
