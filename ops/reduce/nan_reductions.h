// Reductions that pass over NaN, as in NumPy: composites of those that do not. Of types without NaN they are
// these. Part of ops/ops.h.
#pragma once

#include <concepts>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// sum() and prod() of what is not NaN: 0 and 1 where nothing is left.
LazyTensor nansum(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor nanprod(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
/// mean() and var() of what is not NaN: NaN where nothing is left, the variance also where no more than
/// `correction` elements are.
LazyTensor nanmean(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor nanvar(const LazyTensor& x, const Axes& axes = {}, double correction = 0, bool keepdims = false);
/// sqrt(nanvar(x)). The gradient where all elements are equal is 0, as that of std.
LazyTensor nanstd(const LazyTensor& x, const Axes& axes = {}, double correction = 0, bool keepdims = false);
/// Are refused: keepdims comes after the correction.
template <std::same_as<bool> Keepdims>
LazyTensor nanvar(const LazyTensor& x, const Axes& axes, Keepdims keepdims) = delete;
template <std::same_as<bool> Keepdims>
LazyTensor nanstd(const LazyTensor& x, const Axes& axes, Keepdims keepdims) = delete;
/// max() and min() of what is not NaN, and NaN where nothing is left. Gradients as of those.
LazyTensor nanmax(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor nanmin(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);

}  // namespace caldera
