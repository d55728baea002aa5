// Element-wise functions made of other element-wise functions, and a few primitives. Part of ops/ops.h.
//
// Unless said otherwise they take any type; integers and bool are computed in float32, 16-bit floating types
// in float32 and rounded once. Functions of two operands broadcast and promote. Infinities, NaN and zeros of
// both signs go where the Python Array API 2023.12 sends them.
#pragma once

#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

// ---- trigonometry: radians
LazyTensor acos(const LazyTensor& x);
LazyTensor asin(const LazyTensor& x);
LazyTensor atan(const LazyTensor& x);
LazyTensor deg2rad(const LazyTensor& x);
LazyTensor rad2deg(const LazyTensor& x);
/// sin(pi x) / (pi x), and 1 at 0.
LazyTensor sinc(const LazyTensor& x);

// ---- hyperbolic functions
LazyTensor cosh(const LazyTensor& x);
LazyTensor sinh(const LazyTensor& x);
LazyTensor acosh(const LazyTensor& x);
LazyTensor asinh(const LazyTensor& x);
LazyTensor atanh(const LazyTensor& x);

// ---- powers and logarithms
LazyTensor exp2(const LazyTensor& x);
/// Exact where x is a power of 2.
LazyTensor log2(const LazyTensor& x);
LazyTensor log10(const LazyTensor& x);
/// sqrt(a^2 + b^2) without overflow in between; infinity if either is, whatever the other. The slope at the
/// origin is 0.
LazyTensor hypot(const LazyTensor& a, const LazyTensor& b);
/// x log(y), and 0 where x is 0, unless y is NaN.
LazyTensor xlogy(const LazyTensor& x, const LazyTensor& y);
/// log(x / (1 - x)); x is limited to [eps, 1 - eps] first, if given. ValueError unless 0 <= eps <= 1/2.
LazyTensor logit(const LazyTensor& x, std::optional<double> eps = {});

// ---- special functions
/// 1 - erf(x), accurate where that is next to nothing.
LazyTensor erfc(const LazyTensor& x);
/// The y with erf(y) = x; infinite at -1 and 1, NaN beyond.
LazyTensor erfinv(const LazyTensor& x);
/// log |Gamma(x)|; infinite at 0, -1, -2, ….
LazyTensor lgamma(const LazyTensor& x);
/// The derivative of log Gamma. NaN at negative integers, infinite at 0 with the sign that -1 / x has.
LazyTensor digamma(const LazyTensor& x);

// ---- signs, limits and choices
/// The magnitude of `a` with the sign of `b`, zeros and NaN included. The slope at a = 0 is 0.
LazyTensor copysign(const LazyTensor& a, const LazyTensor& b);
/// Whether the sign is negative, that of -0 and of NaN included. Not of bool.
LazyTensor signbit(const LazyTensor& x);
LazyTensor isfinite(const LazyTensor& x);  // not of bool, as isnan
LazyTensor isinf(const LazyTensor& x);
/// x as it is; not of bool.
LazyTensor positive(const LazyTensor& x);
/// x limited to [low, high], each of which may be absent: min(max(x, low), high), NaN if any is. Bounds are
/// numbers or tensors and broadcast against x. The gradient at a bound is x's. Not of bool.
LazyTensor clip(const LazyTensor& x, const std::optional<LazyTensor>& low,
                const std::optional<LazyTensor>& high = {});
/// The larger (smaller) of two, of a number and NaN the number. The gradient of ties is split equally. Not of
/// bool.
LazyTensor fmax(const LazyTensor& a, const LazyTensor& b);
LazyTensor fmin(const LazyTensor& a, const LazyTensor& b);
/// The remainder of a / b rounded towards 0: it has the sign of a, as in C. Not of bool.
LazyTensor fmod(const LazyTensor& a, const LazyTensor& b);
/// x - trunc(x). Floating types only.
LazyTensor frac(const LazyTensor& x);
/// 0 below 0, 1 above, `values` at 0; NaN of NaN. Not of bool.
LazyTensor heaviside(const LazyTensor& x, const LazyTensor& values);
/// NaN and infinities replaced, by default by 0 and by the largest and smallest number of the type. Not of
/// bool.
LazyTensor nan_to_num(const LazyTensor& x, double nan = 0, std::optional<double> positive_infinity = {},
                      std::optional<double> negative_infinity = {});
/// start + weight (end - start), exact at weights 0 and 1.
LazyTensor lerp(const LazyTensor& start, const LazyTensor& end, const LazyTensor& weight);

}  // namespace caldera
