// Terms of entropies, with their limits where a factor is 0. Types as of ops/special/bessel.h. Part of
// ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// -x log(x); 0 at 0, -infinity below.
LazyTensor entr(const LazyTensor& x);
/// x log(1 + y), accurate for small y; 0 where x is 0, unless y is NaN.
LazyTensor xlog1py(const LazyTensor& x, const LazyTensor& y);

}  // namespace caldera
