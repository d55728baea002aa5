// Limits: clip, fmax, fmin, nan_to_num, and interpolation between two. Part of ops/ops.h.
#pragma once

#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x limited to [low, high], each of which may be absent: min(max(x, low), high), NaN if any is. Bounds are
/// numbers or tensors and broadcast against x. The gradient at a bound is x's. Not of bool.
LazyTensor clip(const LazyTensor& x, const std::optional<LazyTensor>& low,
                const std::optional<LazyTensor>& high = {});
/// The larger (smaller) of two, of a number and NaN the number. The gradient of ties is split equally. Not of
/// bool.
LazyTensor fmax(const LazyTensor& a, const LazyTensor& b);
LazyTensor fmin(const LazyTensor& a, const LazyTensor& b);
/// NaN and infinities replaced, by default by 0 and by the largest and smallest number of the type. Not of
/// bool.
LazyTensor nan_to_num(const LazyTensor& x, double nan = 0, std::optional<double> positive_infinity = {},
                      std::optional<double> negative_infinity = {});
/// start + weight (end - start), exact at weights 0 and 1.
LazyTensor lerp(const LazyTensor& start, const LazyTensor& end, const LazyTensor& weight);

}  // namespace caldera
