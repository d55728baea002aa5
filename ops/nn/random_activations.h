// Activations that depend on random numbers. Part of ops/ops.h.
//
// Which elements are chosen is a pure function of the seed and the shape, the same on every device; without a
// seed the global generator gives one (ops/random/generator.h).
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Dropout that keeps mean and variance of what selu() gives: with probability p elements are -1.758..., the
/// limit of selu() to the left, and all are scaled and shifted (Klambauer et al. 2017). ValueError unless p
/// is in [0, 1].
LazyTensor alpha_dropout(const LazyTensor& x, double p, std::uint64_t seed);
LazyTensor alpha_dropout(const LazyTensor& x, double p = 0.5);

/// x above 0, x times a number drawn evenly from [lower, upper) below (Xu et al. 2015). What it is in
/// inference is leaky_relu() of (lower + upper) / 2. ValueError unless lower <= upper, both finite.
LazyTensor rrelu(const LazyTensor& x, double lower, double upper, std::uint64_t seed);
LazyTensor rrelu(const LazyTensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3);

}  // namespace caldera
