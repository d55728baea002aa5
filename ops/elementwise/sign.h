// Signs, copied and asked for, and what is infinite or finite. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The magnitude of `a` with the sign of `b`, zeros and NaN included. The slope at a = 0 is 0.
LazyTensor copysign(const LazyTensor& a, const LazyTensor& b);
/// Whether the sign is negative, that of -0 and of NaN included. Not of bool.
LazyTensor signbit(const LazyTensor& x);
LazyTensor isfinite(const LazyTensor& x);  // not of bool, as isnan
LazyTensor isinf(const LazyTensor& x);
/// 0 below 0, 1 above, `values` at 0; NaN of NaN. Not of bool.
LazyTensor heaviside(const LazyTensor& x, const LazyTensor& values);

}  // namespace caldera
