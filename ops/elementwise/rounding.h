// Rounding and what it leaves: floor, round, frac, fmod. Integers stay as they are. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor floor(const LazyTensor& x);
LazyTensor ceil(const LazyTensor& x);
LazyTensor round(const LazyTensor& x);  // half to even
/// Rounds to so many digits behind the point, negative ones in front of it: round(x 10^decimals) /
/// 10^decimals, whose products are rounded as in NumPy and PyTorch. Integers are exact. ValueError for digits
/// that the type does not reach.
LazyTensor round(const LazyTensor& x, int decimals);
LazyTensor trunc(const LazyTensor& x);
/// x - trunc(x). Floating types only.
LazyTensor frac(const LazyTensor& x);
/// The remainder of a / b rounded towards 0: it has the sign of a, as in C. Not of bool.
LazyTensor fmod(const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
