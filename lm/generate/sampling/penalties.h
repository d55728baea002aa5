// Penalties: logits of tokens that a text has said already, made smaller.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lm/generate/sampling/sampling_options.h"
#include "lm/generate/sampling/token_constraint.h"

namespace caldera {

/// Divides positive and multiplies negative logits by `penalty`, once for every distinct id of `seen`. Ids
/// outside of the logits are passed over.
void apply_repetition_penalty(std::span<float> logits, std::span<const std::int32_t> seen, double penalty);

/// Takes off each logit `frequency` times the number of times that `generated` has its id, and `presence`
/// once if it has it at all. Ids outside of the logits are passed over.
void apply_count_penalties(std::span<float> logits, std::span<const std::int32_t> generated, double frequency,
                           double presence);

/// Adds to the logits. Ids outside of them are passed over.
void apply_logit_bias(std::span<float> logits, std::span<const std::pair<std::int32_t, float>> bias);

/// Takes off the logits of tokens that would make a repetition at the text's end longer, as RepeatPenalty
/// says, whose breakers are in ascending order. Ids outside of the logits are passed over.
void apply_repeat_penalty(std::span<float> logits, std::span<const std::int32_t> seen,
                          const RepeatPenalty& penalty);

/// Makes the logits of these tokens -infinity where another token is left; else changes nothing.
void apply_least_length(std::span<float> logits, std::span<const std::int32_t> ends);

/// Makes the logits -infinity that are not of the set.
void apply_token_set(std::span<float> logits, TokenSet allowed);

}  // namespace caldera
