// Trigonometric and hyperbolic functions; angles are in radians. Part of ops/ops.h.
//
// Unless said otherwise functions take any type; integers and bool are computed in float32, 16-bit floating
// types in float32 and rounded once. Functions of two operands broadcast and promote. Infinities, NaN and
// zeros of both signs go where the Python Array API 2023.12 sends them.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor sin(const LazyTensor& x);
LazyTensor cos(const LazyTensor& x);
LazyTensor tan(const LazyTensor& x);
LazyTensor acos(const LazyTensor& x);
LazyTensor asin(const LazyTensor& x);
LazyTensor atan(const LazyTensor& x);
/// The angle of the point (x, y), in [-pi, pi].
LazyTensor atan2(const LazyTensor& y, const LazyTensor& x);
LazyTensor deg2rad(const LazyTensor& x);
LazyTensor rad2deg(const LazyTensor& x);

LazyTensor cosh(const LazyTensor& x);
LazyTensor sinh(const LazyTensor& x);
LazyTensor tanh(const LazyTensor& x);
LazyTensor acosh(const LazyTensor& x);
LazyTensor asinh(const LazyTensor& x);
LazyTensor atanh(const LazyTensor& x);

}  // namespace caldera
