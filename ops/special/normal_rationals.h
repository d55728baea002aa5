// Wichura's rational functions of the quantiles of the normal distribution.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// The quantile at probability 1/2 + q for |q| <= kCentralHalf.
LazyTensor central_quantile(const LazyTensor& q);
inline constexpr double kCentralHalf = 0.425;
/// Tells how far the quantile of a probability outside of the centre is from 0: of r =
/// sqrt(-log(probability)), which is at most `largest`.
LazyTensor distance_in_tail(const LazyTensor& r, double largest);
/// The quantile of probabilities 0 < p < 1.
LazyTensor normal_quantile_of(const LazyTensor& p);

}  // namespace caldera::ops
