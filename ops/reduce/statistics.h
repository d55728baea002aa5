// Products, variances, and what holds of any or every element: composites of primitives. Part of ops/ops.h.
#pragma once

#include <concepts>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// The product of the elements; 1 for none. Its gradient is right where elements are zero, too. Products of
/// boolean and of integers narrower than i32 are i32; other dtypes keep theirs. With a dtype the elements are
/// cast to it first, and the product is of it.
LazyTensor prod(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor prod(const LazyTensor& x, const Axes& axes, DType dtype, bool keepdims = false);
/// sum((x - mean(x))^2) / (n - correction): correction 0 is the population's variance, 1 the sample's. NaN or
/// infinite where n <= correction.
LazyTensor var(const LazyTensor& x, const Axes& axes = {}, double correction = 0, bool keepdims = false);
/// sqrt(var(x)). The gradient where all elements are equal is 0 (PyTorch 1.13 and vector_norm agree).
/// With `using namespace caldera` write caldera::std(x): `std` alone is the standard library's
/// namespace, too, and no compiler chooses between them.
LazyTensor std(const LazyTensor& x, const Axes& axes = {}, double correction = 0, bool keepdims = false);
/// Are refused: keepdims comes after the correction.
template <std::same_as<bool> Keepdims>
LazyTensor var(const LazyTensor& x, const Axes& axes, Keepdims keepdims) = delete;
template <std::same_as<bool> Keepdims>
LazyTensor std(const LazyTensor& x, const Axes& axes, Keepdims keepdims) = delete;
/// Whether any, or every, element is true: not 0 (NaN is not). Of no elements: false, true.
LazyTensor any(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor all(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
/// Counts the elements that are not 0, as i32.
LazyTensor count_nonzero(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);

}  // namespace caldera
