// Exponentials, logarithms and the logistic function. Part of ops/ops.h.
//
// Unless said otherwise functions take any type; integers and bool are computed in float32, 16-bit floating
// types in float32 and rounded once. Functions of two operands broadcast and promote. Infinities, NaN and
// zeros of both signs go where the Python Array API 2023.12 sends them.
#pragma once

#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor exp(const LazyTensor& x);
LazyTensor expm1(const LazyTensor& x);
LazyTensor exp2(const LazyTensor& x);
LazyTensor log(const LazyTensor& x);
LazyTensor log1p(const LazyTensor& x);
/// Exact where x is a power of 2.
LazyTensor log2(const LazyTensor& x);
LazyTensor log10(const LazyTensor& x);
/// x log(y), and 0 where x is 0, unless y is NaN.
LazyTensor xlogy(const LazyTensor& x, const LazyTensor& y);
LazyTensor sigmoid(const LazyTensor& x);
/// log(x / (1 - x)); x is limited to [eps, 1 - eps] first, if given. ValueError unless 0 <= eps <= 1/2.
LazyTensor logit(const LazyTensor& x, std::optional<double> eps = {});

}  // namespace caldera
