// The quantiles of the normal distribution and what drawing from a part of it takes.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// The quantiles u of the standard normal distribution given lower <= x <= upper, where lower + upper <= 0. u
/// is f32 or f64, least <= u <= 1. Results may pass the bounds by rounding.
LazyTensor truncated_normal_quantile(const LazyTensor& u, double least, double lower, double upper);

/// The least number that the floating type holds and that is not less.
double rounded_up(double value, DType type);

}  // namespace caldera::ops
