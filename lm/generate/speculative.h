// Speculative decoding: a draft's tokens are checked in one call of the model (Leviathan et al. 2023, Chen et
// al. 2023).
#pragma once

#include <cstdint>

#include "lm/generate/continuation.h"
#include "lm/generate/feeder.h"
#include "lm/generate/sampling/sampler.h"

namespace caldera {

/// Continues a text whose prompt was fed, until it stops or `limit` positions are fed, with
/// options.drafter. A token x that was drafted from q is kept with probability min(1, p(x) / q(x)), where p
/// is what the sampler would draw from; the token in place of one that is not kept is drawn from max(0, p -
/// q), normalised. So every token is drawn from p, whatever the draft is.
void generate_with_drafts(Feeder& feeder, Sampler& sampler, Continuation& text, std::int64_t limit,
                          const GenerateOptions& options, Generation& result);

/// Draws from a distribution whose probabilities need not sum to 1, with the sampler's randomness.
std::int32_t draw_from(std::span<const TokenProbability> distribution, Sampler& sampler);
/// max(0, p - q), not normalised; p itself where that is nothing (rounding).
std::vector<TokenProbability> residual(std::span<const TokenProbability> p,
                                       std::span<const TokenProbability> q);

}  // namespace caldera
