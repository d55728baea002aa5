// Integrals and derivatives of functions that are given by samples. Part of ops/ops.h.
//
// Integers are computed in float32, 16-bit types in float32 and rounded once.
#pragma once

#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// The integral along an axis by the trapezoidal rule, of samples dx apart; 0 of fewer than two.
LazyTensor trapezoid(const LazyTensor& y, double dx = 1, AxisIndex axis = -1);
/// Integrates samples at x: a vector of positions along the axis, or a tensor that broadcasts to y.
LazyTensor trapezoid(const LazyTensor& y, const LazyTensor& x, AxisIndex axis = -1);
/// The integrals up to each sample but the first: the axis is shorter by 1.
LazyTensor cumulative_trapezoid(const LazyTensor& y, double dx = 1, AxisIndex axis = -1);
LazyTensor cumulative_trapezoid(const LazyTensor& y, const LazyTensor& x, AxisIndex axis = -1);

/// The derivatives along each of the axes (by default all): central differences of second order, and at both
/// ends one-sided ones of `edge_order` 1 or 2 (numpy.gradient). Samples are `spacing` apart. ShapeError
/// for an axis with fewer than edge_order + 1 samples.
std::vector<LazyTensor> gradient(const LazyTensor& x, double spacing = 1, const Axes& axes = {},
                                 int edge_order = 1);
/// With a spacing for each axis: a number, or a vector of the samples' positions.
std::vector<LazyTensor> gradient(const LazyTensor& x, const std::vector<LazyTensor>& spacings,
                                 const Axes& axes = {}, int edge_order = 1);

}  // namespace caldera
