// Powers and roots. Part of ops/ops.h.
//
// Unless said otherwise functions take any type; integers and bool are computed in float32, 16-bit floating
// types in float32 and rounded once. Functions of two operands broadcast and promote. Infinities, NaN and
// zeros of both signs go where the Python Array API 2023.12 sends them.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor sqrt(const LazyTensor& x);
LazyTensor rsqrt(const LazyTensor& x);
LazyTensor pow(const LazyTensor& a, const LazyTensor& b);
/// sqrt(a^2 + b^2) without overflow in between; infinity if either is, whatever the other. The slope at the
/// origin is 0.
LazyTensor hypot(const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
