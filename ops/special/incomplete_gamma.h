// The regularised incomplete Gamma functions. Types as of ops/special/bessel.h. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// P(a, x), the integral of t^(a - 1) exp(-t) from 0 to x over Gamma(a): the probability that a Gamma
/// variable of shape a is below x. NaN where a or x is negative and where both are 0 or infinite; 1 at a = 0,
/// 0 at x = 0 and at a = infinity. Differentiable in x; GradientError in a (as in PyTorch).
LazyTensor igamma(const LazyTensor& a, const LazyTensor& x);
/// Q(a, x) = 1 - P(a, x), accurate where that is next to nothing.
LazyTensor igammac(const LazyTensor& a, const LazyTensor& x);

}  // namespace caldera
