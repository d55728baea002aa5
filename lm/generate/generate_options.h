// Defines what generate() is asked and what it answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lm/generate/decoding_options.h"
#include "lm/generate/finish_reason.h"
#include "lm/generate/sampling/log_probabilities.h"

namespace caldera {

struct GenerateOptions : DecodingOptions {
  /// Receives each token as it is chosen, the stop token included; false ends the generation.
  std::function<bool(std::int32_t)> on_token;
  /// Receives the text as it grows, where text.tokenizer makes any; false ends the generation.
  std::function<bool(std::string_view)> on_text;
  /// Receives the logits (vocabulary size) of every position fed to the model, the prompt's first. The token
  /// drawn last is not fed: there are prompt + generated - 1 rows (at least the prompt's).
  std::function<void(std::span<const float>)> on_logits;
};

struct Generation {
  std::vector<std::int32_t> ids;     ///< chosen tokens, without the prompt; a stop token is the last of them
  std::string text;                  ///< of them, where text.tokenizer makes any, without a stop string
  std::vector<TokenReport> reports;  ///< of each token, where log-probabilities are asked for
  FinishReason finish_reason = FinishReason::length;
  std::optional<std::string> stop;  ///< the stop string that ended the text
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;  ///< over the tokens fed after the prompt; 0 if there were none
  std::int64_t drafted_tokens = 0;      ///< that a drafter guessed, and of these
  std::int64_t accepted_tokens = 0;     ///< those that the model kept
};

}  // namespace caldera
