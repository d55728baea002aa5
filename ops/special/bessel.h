// Modified Bessel functions of the first kind, of orders 0 and 1. Part of ops/ops.h.
//
// Functions of ops/special/ take any type, as those of ops/elementwise/special.h: integers and bool are
// computed in float32, 16-bit floating types in float32 and rounded once.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor i0(const LazyTensor& x);
LazyTensor i1(const LazyTensor& x);
/// exp(-|x|) i0(x) and exp(-|x|) i1(x), without overflow. Their slope at 0 is that of the function without
/// the exponential.
LazyTensor i0e(const LazyTensor& x);
LazyTensor i1e(const LazyTensor& x);

}  // namespace caldera
