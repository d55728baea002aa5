// Covariances and correlations of variables that are observed together. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The covariances of the rows of x: variables by observations, or the observations of one variable, whose
/// result has no axes. Sums of products of deviations, over n - correction. `fweights` (integers, how often
/// each observation counts) and `aweights` (floating, how much) are vectors of its columns; with aweights the
/// divisor is sum(w) - correction sum(w aweights) / sum(w), w their product. NaN or infinite where it is 0 or
/// less. Integers are computed in float32. (torch.cov)
LazyTensor cov(const LazyTensor& x, double correction = 1, const LazyTensor& fweights = {},
               const LazyTensor& aweights = {});
/// Pearson's correlations of the rows: cov(x) over the products of deviations, limited to [-1, 1].
LazyTensor corrcoef(const LazyTensor& x);

}  // namespace caldera
