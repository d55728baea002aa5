// Drafter: guesses what a model will say next, for the model to check (speculative decoding).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lm/generate/sampling/sampler.h"

namespace caldera {

/// Tokens that may come next, one after the other.
struct TokenDraft {
  std::vector<std::int32_t> ids;
  /// Holds what each of them was drawn from: as many distributions as ids, or none where nothing was drawn
  /// (each token had probability 1).
  std::vector<std::vector<TokenProbability>> drawn_from;
};

/// One text at a time; not for several threads at once.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// At most `count` tokens after text.seen, the prompt and all tokens so far. None at all is an answer too.
  /// It may be another text than at the last call; what it begins with alike is not computed again.
  virtual TokenDraft propose(const SamplingContext& text, std::int64_t count) = 0;
};

/// Guesses that the text goes on as it did after its last tokens occurred before (Saxena 2023, "prompt
/// lookup"): good where an answer quotes its prompt. Costs nothing but the search.
class LookupDrafter final : public Drafter {
 public:
  /// Looks for the last `longest` tokens, then for fewer, down to `shortest`. Throws ValueError unless 1 <=
  /// shortest <= longest.
  explicit LookupDrafter(std::int64_t longest = 3, std::int64_t shortest = 1);
  TokenDraft propose(const SamplingContext& text, std::int64_t count) override;

 private:
  std::size_t longest_, shortest_;
};

}  // namespace caldera
