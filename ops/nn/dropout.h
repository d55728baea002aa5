// Dropout of elements and of channels. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Zero with probability p, else x / (1 - p) (Srivastava et al. 2014). What is kept is a pure function of
/// `seed` and the shape, the same on every device; the seed is an argument of the plan. ValueError unless 0
/// <= p <= 1.
LazyTensor dropout(const LazyTensor& x, double p, std::uint64_t seed);
/// With a seed of the global generator (ops/random/generator.h): another mask at every call.
LazyTensor dropout(const LazyTensor& x, double p);
/// Drops whole channels (axis 1 of (batch, channels, ...)) at once (Tompson et al. 2015).
LazyTensor channel_dropout(const LazyTensor& x, double p, std::uint64_t seed);
LazyTensor channel_dropout(const LazyTensor& x, double p);

}  // namespace caldera
