// Defines what generate() is asked and what it answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lm/generate/drafter.h"
#include "lm/generate/finish_reason.h"
#include "lm/generate/sampling/sampling_options.h"

namespace caldera {

struct GenerateOptions {
  std::int64_t max_tokens = 100;
  SamplingOptions sampling;
  /// Tokens that end the text (see stop_tokens).
  std::vector<std::int32_t> stop_ids;
  /// Receives each token as it is drawn, the stop token included; false ends the generation.
  std::function<bool(std::int32_t)> on_token;
  /// Receives the logits (vocabulary size) of every position fed to the model, the prompt's first. The token
  /// drawn last is not fed: there are prompt + generated - 1 rows (at least the prompt's).
  std::function<void(std::span<const float>)> on_logits;
  /// Guesses the next tokens, which the model checks in one call (see speculative.h): faster where most are
  /// right, and drawn from the same distribution; greedy tokens are the same. May be null. Its tokens are of
  /// the model's vocabulary.
  std::shared_ptr<Drafter> drafter;
  std::int64_t draft_tokens = 4;  ///< at a time
};

struct Generation {
  std::vector<std::int32_t> ids;  ///< drawn tokens, without the prompt; a stop token is the last of them
  FinishReason finish_reason = FinishReason::length;
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;  ///< over the tokens fed after the prompt; 0 if there were none
  std::int64_t drafted_tokens = 0;      ///< that a drafter guessed, and of these
  std::int64_t accepted_tokens = 0;     ///< those that the model kept
};

}  // namespace caldera
