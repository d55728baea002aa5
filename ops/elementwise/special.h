// Functions that integrals define: the error function and its relatives, log Gamma, digamma; and sinc. Part
// of ops/ops.h.
//
// Unless said otherwise functions take any type; integers and bool are computed in float32, 16-bit floating
// types in float32 and rounded once. Functions of two operands broadcast and promote. Infinities, NaN and
// zeros of both signs go where the Python Array API 2023.12 sends them.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor erf(const LazyTensor& x);
/// 1 - erf(x), accurate where that is next to nothing.
LazyTensor erfc(const LazyTensor& x);
/// The y with erf(y) = x; infinite at -1 and 1, NaN beyond.
LazyTensor erfinv(const LazyTensor& x);
/// log |Gamma(x)|; infinite at 0, -1, -2, ….
LazyTensor lgamma(const LazyTensor& x);
/// The derivative of log Gamma. NaN at negative integers, infinite at 0 with the sign that -1 / x has.
LazyTensor digamma(const LazyTensor& x);
/// sin(pi x) / (pi x), and 1 at 0.
LazyTensor sinc(const LazyTensor& x);

}  // namespace caldera
