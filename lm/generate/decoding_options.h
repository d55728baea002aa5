// DecodingOptions: how a sequence is continued, whatever continues it: generate() or a BatchGenerator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lm/generate/drafter.h"
#include "lm/generate/sampling/sampling_options.h"
#include "lm/generate/sampling/token_constraint.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// Says how the tokens of a sequence become text.
struct TextOptions {
  /// Null: no text is made, and there can be no stop strings.
  std::shared_ptr<const Tokenizer> tokenizer;
  /// Strings that end the text and are no part of it, wherever tokens divide them.
  std::vector<std::string> stop;
  /// Says which special tokens are part of the text, as marks of thinking and of calls are. Null: none is.
  std::function<bool(std::int32_t)> keeps_special;
  /// Whether the text goes on from the prompt's: many tokenizers leave out the space before a text's first
  /// word.
  bool continues_prompt = true;
};

/// All of these work together.
struct DecodingOptions {
  std::int64_t max_tokens = 100;
  SamplingOptions sampling;
  /// Tokens that end the text (see stop_tokens in generator.h).
  std::vector<std::int32_t> stop_ids;
  /// Tokens that come before a stop token or a stop string may end the text, as vLLM has it; a constraint
  /// that allows nothing but the end ends it all the same.
  std::int64_t min_tokens = 0;
  TextOptions text;
  /// Says how many of the most likely tokens are reported with each one, with the log-probabilities of
  /// these and of the token itself: those of the model, before penalties and filters. Absent: none, which is
  /// cheaper.
  std::optional<std::int64_t> logprobs;
  /// Says which tokens may come next, and learns of each that was chosen. It follows one sequence. May be
  /// null.
  std::shared_ptr<TokenConstraint> constraint;
  /// Guesses the next tokens, which the model checks in one call (see Continuation::check): faster where most
  /// are right, and drawn from the same distribution; greedy tokens are the same. Its tokens are of the
  /// model's vocabulary. A batch is faster where each sequence has a drafter of its own. May be null.
  std::shared_ptr<Drafter> drafter;
  std::int64_t draft_tokens = 4;  ///< at a time

  bool drafts() const { return drafter != nullptr && draft_tokens > 0; }
  /// Whether a device can choose the tokens: nothing but the most likely one is asked for.
  bool takes_choices() const {
    return sampling.is_greedy() && constraint == nullptr && !logprobs && min_tokens == 0;
  }
};

/// Throws ValueError, naming the option, for options out of their domains, those of sampling apart.
void check_decoding(const DecodingOptions& options, std::int64_t vocabulary);

}  // namespace caldera
