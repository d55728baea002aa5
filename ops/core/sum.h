// The sum over axes. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// Sums of boolean and of integers narrower than i32 are i32; other dtypes keep theirs. With a dtype the
/// elements are cast to it first, and the sum is of it.
LazyTensor sum(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor sum(const LazyTensor& x, const Axes& axes, DType dtype, bool keepdims = false);

}  // namespace caldera
