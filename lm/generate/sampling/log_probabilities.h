// Log-probabilities of tokens, as they are reported with a generated text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace caldera {

struct TokenLogProbability {
  std::int32_t id = 0;
  double log_probability = 0;  ///< natural; -infinity for a token that is ruled out

  bool operator==(const TokenLogProbability&) const = default;
};

/// Holds what is reported of a token that was drawn.
struct TokenReport {
  TokenLogProbability drawn;
  std::vector<TokenLogProbability> top;  ///< the most likely tokens first; of equals the lowest id
};

/// Reports the log-softmax of logits at `id` and at the `top` most likely tokens. Give it the model's logits
/// as they are: what sampling does to them is not part of what the model says (vLLM's "raw_logprobs"). Throws
/// ValueError where no logit is finite, one is NaN or +infinity, or `id` is outside of them.
TokenReport report_token(std::span<const float> logits, std::int32_t id, std::size_t top);

}  // namespace caldera
