// Cumulative operations along one axis: out[i] combines x[0] to x[i]. Computed in log2(n) steps over the
// whole tensor (Hillis and Steele 1986), so that rounding grows with log n, and every derivative follows.
// Part of ops/ops.h.
#pragma once

#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Sums of boolean and of integers narrower than i32 are i32, as are their products; other dtypes keep
/// theirs.
LazyTensor cumsum(const LazyTensor& x, AxisIndex axis = -1);
/// cumsum() as the Array API has it: `axis` may be absent for tensors of one axis only; the elements are cast
/// to `dtype` first; with `include_initial` the sum of none, 0, stands in front, and the axis is longer by 1.
LazyTensor cumulative_sum(const LazyTensor& x, std::optional<AxisIndex> axis = {},
                          std::optional<DType> dtype = {}, bool include_initial = false);
LazyTensor cumprod(const LazyTensor& x, AxisIndex axis = -1);
/// NaN from the first NaN on. Where equal elements are the largest so far, the gradient goes to the first.
LazyTensor cummax(const LazyTensor& x, AxisIndex axis = -1);
LazyTensor cummin(const LazyTensor& x, AxisIndex axis = -1);
/// log(cumsum(exp(x))) without overflow.
LazyTensor logcumsumexp(const LazyTensor& x, AxisIndex axis = -1);

/// log(exp(a) + exp(b)) without overflow.
LazyTensor logaddexp(const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
