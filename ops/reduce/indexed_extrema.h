// Extrema with where they are, and both extrema at once. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"
#include "ops/core/indexed_result.h"

namespace caldera {

/// max() along one axis and its argmax(): of ties the first, NaN before all numbers.
IndexedResult max_with_indices(const LazyTensor& x, AxisIndex axis = -1, bool keepdims = false);
IndexedResult min_with_indices(const LazyTensor& x, AxisIndex axis = -1, bool keepdims = false);
/// cummax() and where each element of it stands: of ties the first, as the gradient. (PyTorch tells the
/// last.)
IndexedResult cummax_with_indices(const LazyTensor& x, AxisIndex axis = -1);
IndexedResult cummin_with_indices(const LazyTensor& x, AxisIndex axis = -1);

struct MinMaxResult {
  LazyTensor min, max;
};
/// amin() and amax() over the same axes.
MinMaxResult aminmax(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);

}  // namespace caldera
