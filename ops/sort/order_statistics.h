// Order statistics: quantiles, medians, the k-th element, the most frequent one. Orders are those of
// ops/sort/sorting.h: NaN is the largest number. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "ops/core/indexed_result.h"

namespace caldera {

/// Says what a quantile is that falls between two elements: on the line through both; the lower; the higher;
/// the middle between them; the nearer, of which halfway the one with an even position.
enum class QuantileMode : std::uint8_t { linear, lower, higher, midpoint, nearest };

/// The quantile 0 <= q <= 1 along an axis, of n elements the one at position q (n - 1) in order. NaN where
/// there is one. Its gradient goes to the elements that it is made of. Throws ValueError for another q,
/// ShapeError for no elements.
LazyTensor quantile(const LazyTensor& x, double q, AxisIndex axis = -1, bool keepdims = false,
                    QuantileMode mode = QuantileMode::linear);
/// Several quantiles, along a new axis in front. ValueError for none.
LazyTensor quantile(const LazyTensor& x, const std::vector<double>& q, AxisIndex axis = -1,
                    bool keepdims = false, QuantileMode mode = QuantileMode::linear);
/// Quantiles of what is not NaN, and NaN where nothing is left.
LazyTensor nanquantile(const LazyTensor& x, double q, AxisIndex axis = -1, bool keepdims = false,
                       QuantileMode mode = QuantileMode::linear);
LazyTensor nanquantile(const LazyTensor& x, const std::vector<double>& q, AxisIndex axis = -1,
                       bool keepdims = false, QuantileMode mode = QuantileMode::linear);

/// quantile(x, 0.5): NumPy's median. (PyTorch's takes the lower of two in the middle.)
LazyTensor median(const LazyTensor& x, AxisIndex axis = -1, bool keepdims = false);
LazyTensor nanmedian(const LazyTensor& x, AxisIndex axis = -1, bool keepdims = false);

/// The lower of the two in the middle and its position: torch.median of an axis. Of equal elements the first;
/// where there is NaN, NaN and the position of the first. Of every numeric type.
IndexedResult median_with_indices(const LazyTensor& x, AxisIndex axis = -1, bool keepdims = false);
/// The k-th smallest element along an axis, k = 1 ... n, and its position. Of equal elements the first counts
/// first; NaN is the largest. ValueError for another k.
IndexedResult kthvalue(const LazyTensor& x, std::int64_t k, AxisIndex axis = -1, bool keepdims = false);
/// The most frequent element along an axis, the smallest of several, and where it first stands. (PyTorch
/// tells where it last stands.) NaN equals nothing. Of any type.
IndexedResult mode(const LazyTensor& x, AxisIndex axis = -1, bool keepdims = false);

}  // namespace caldera
