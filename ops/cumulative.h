// Cumulative operations along one axis: out[i] combines x[0] to x[i]. Computed in log2(n) steps over the
// whole tensor (Hillis and Steele 1986), so that rounding grows with log n, and every derivative follows.
// Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Sums of boolean and u8 are i32, as are their products; other dtypes keep theirs.
LazyTensor cumsum(const LazyTensor& x, int axis = -1);
LazyTensor cumprod(const LazyTensor& x, int axis = -1);
/// NaN from the first NaN on. Where equal elements are the largest so far, the gradient goes to the first.
LazyTensor cummax(const LazyTensor& x, int axis = -1);
LazyTensor cummin(const LazyTensor& x, int axis = -1);
/// log(cumsum(exp(x))) without overflow.
LazyTensor logcumsumexp(const LazyTensor& x, int axis = -1);

/// log(exp(a) + exp(b)) without overflow.
LazyTensor logaddexp(const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
