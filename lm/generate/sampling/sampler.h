// Sampler: picks the next token from a row of logits. Host code, deterministic for a given seed on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "lm/generate/sampling/ranked_logits.h"
#include "lm/generate/sampling/sampling_options.h"
#include "lm/generate/sampling/token_constraint.h"

namespace caldera {

/// The most likely token of each row of logits (..., vocabulary), computed where the logits are: ids
/// (..., 1) of i32, the lowest of equals. In place of a row that the sampler refuses stands a negative
/// number, which checked_choice() throws for.
LazyTensor most_likely(const LazyTensor& logits);
/// The id, as it is. Throws ValueError, as Sampler::next does, for what stands for a row that it refuses.
std::int32_t checked_choice(std::int32_t id);

/// A token and how likely it is to be drawn.
struct TokenProbability {
  std::int32_t id = 0;
  double probability = 0;
};

/// Holds what a draw depends on besides the logits.
struct SamplingContext {
  /// The prompt and all tokens generated so far.
  std::span<const std::int32_t> seen;
  /// Counts those of the prompt, which the presence and frequency penalties pass over.
  std::size_t prompt_size = 0;
  /// The tokens that may be drawn; no set at all allows every token.
  std::optional<TokenSet> allowed = std::nullopt;
  /// Tokens that are not drawn while there is another one: those that end a text which is to be longer.
  std::span<const std::int32_t> avoided = {};
};

/// Not thread-safe: every draw advances the generator.
class Sampler {
 public:
  /// Throws ValueError as SamplingOptions::validate.
  explicit Sampler(const SamplingOptions& options);

  const SamplingOptions& options() const { return options_; }

  /// The next token. Throws ValueError when there are no logits, one of them is NaN or infinity, or all that
  /// are allowed are -infinity (which rules a token out).
  std::int32_t next(std::span<const float> logits, const SamplingContext& context);
  /// Draws the next token after `seen` (the prompt and all tokens generated so far), all of which the
  /// penalties count.
  std::int32_t next(std::span<const float> logits, std::span<const std::int32_t> seen) {
    return next(logits, SamplingContext{.seen = seen});
  }
  std::int32_t next(std::span<const float> logits, std::initializer_list<std::int32_t> seen) {
    return next(logits, std::span(seen.begin(), seen.size()));
  }

  /// Returns what next() draws from: the tokens that are left, the most likely first, and their
  /// probabilities, which sum to 1. Of greedy sampling the one token. Nothing is drawn. Throws as next().
  std::vector<TokenProbability> distribution(std::span<const float> logits, const SamplingContext& context);

  /// Says which of the tokens that distribution() gave was chosen: what mirostat goes by. next() does so
  /// itself.
  void chose(std::int32_t id, std::span<const TokenProbability> among);

  /// A number in [0, 1) that advances the generator as one draw does: what accepts or refuses a draft.
  double uniform();

 private:
  using Cut = detail::RankedLogits::Cut;

  std::span<const float> changed(std::span<const float> logits, const SamplingContext& context);
  Cut filter(std::span<const float> logits);
  void follow(double probability);
  std::size_t top_choices(const Cut& cut);
  std::vector<TokenProbability> left(std::span<const float> logits);

  SamplingOptions options_;
  std::mt19937_64 engine_;
  double surprise_ = 0;          // mirostat's mu: the most bits that a token may surprise by
  std::vector<float> changed_;   // scratch
  detail::RankedLogits ranked_;  // scratch
};

}  // namespace caldera
