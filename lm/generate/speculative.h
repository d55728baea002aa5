// The arithmetic of speculative decoding: which guesses are kept, and what stands in place of the others
// (Leviathan et al. 2023, Chen et al. 2023). Continuation::check uses it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lm/generate/sampling/sampler.h"

namespace caldera {

/// Draws whether a guess that was drawn from q is kept: with probability min(1, p(guess) / q(guess)).
bool accepts(std::int32_t guess, std::span<const TokenProbability> p, std::span<const TokenProbability> q,
             Sampler& sampler);
/// Draws from a distribution whose probabilities need not sum to 1, with the sampler's randomness.
std::int32_t draw_from(std::span<const TokenProbability> distribution, Sampler& sampler);
/// Returns max(0, p - q), not normalised; p itself where that is nothing (rounding).
std::vector<TokenProbability> residual(std::span<const TokenProbability> p,
                                       std::span<const TokenProbability> q);

}  // namespace caldera
