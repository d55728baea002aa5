// Softmax and its logarithms. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// exp(x) over its sum along an axis, without overflow. Of integers float32.
///
/// Of tensors without axes, axis 0 or -1 is the element itself here, in logsumexp, and wherever the elements
/// along one axis are put in order or added up (cumulative.h, sorting.h, argmax).
LazyTensor softmax(const LazyTensor& x, AxisIndex axis = -1);
LazyTensor log_softmax(const LazyTensor& x, AxisIndex axis = -1);
/// log(sum(exp(x))) over the axes without overflow; -infinity of no elements.
LazyTensor logsumexp(const LazyTensor& x, const Axes& axes = -1, bool keepdims = false);

}  // namespace caldera

namespace caldera::ops {

/// The derivative of p = softmax(x) along `axis`, from its value: p (d - sum(p d)). Its matrix of derivatives
/// is symmetric, so this is both the cotangent of x from that of p and the tangent of p from that of x. The
/// transforms use it for every softmax, also one that a user wrote out (engine/autodiff/written_softmax.h).
LazyTensor softmax_derivative(const LazyTensor& p, const LazyTensor& d, int axis);

}  // namespace caldera::ops
