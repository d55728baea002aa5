// Hurwitz' zeta function and the derivatives of log Gamma that are made of it. Types as of
// ops/special/bessel.h. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The sum of (q + k)^-s over k = 0, 1, ... for q > 0 and s > 1; infinite at s = 1 and where q is 0 or a
/// negative integer, NaN for other s below 1 and q below 0. Differentiable in both. (PyTorch has a value for
/// negative q and integers s, and no gradient in s.)
LazyTensor zeta(const LazyTensor& s, const LazyTensor& q);
/// The n-th derivative of digamma, which is that of n = 0: (-1)^(n + 1) n! zeta(n + 1, x), by reflection
/// below 0. Infinite at 0, -1, -2 ... with the sign (-1)^(n + 1), for n > 0. ValueError unless 0 <= n <= 30.
LazyTensor polygamma(int n, const LazyTensor& x);
/// The logarithm of the multivariate Gamma function of p dimensions: log Gamma(a) + ... + log Gamma(a - (p -
/// 1) / 2) + p (p - 1) / 4 log(pi). NaN unless a > (p - 1) / 2; ValueError unless 1 <= p <= 1000.
LazyTensor multigammaln(const LazyTensor& a, int p);

}  // namespace caldera
