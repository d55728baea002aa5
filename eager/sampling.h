// Sampling of the eager API: a token from logits.
#pragma once

#include <cstdint>
#include <span>

#include "eager/tensor.h"
#include "lm/generate/sampling/sampling_options.h"

namespace caldera::v1 {

/// Says how a token is chosen. A value.
class SamplingStrategy {
 public:
  enum class Kind : std::uint8_t { Greedy, TopK, TopP, Temperature };

  // Each throws InferenceError (InvalidSampling) for a number outside of its domain.

  /// The most likely token, the lowest id of equals.
  static SamplingStrategy greedy() { return SamplingStrategy(Kind::Greedy, 0, 1, 0); }
  /// One of the k most likely, k at least 1.
  static SamplingStrategy top_k(std::int64_t k, double temperature = 1);
  /// One of the smallest set of at least the probability p, in (0, 1] (nucleus sampling).
  static SamplingStrategy top_p(double p, double temperature = 1);
  /// Any token; logits are divided by the temperature, which is positive.
  static SamplingStrategy temperature(double temperature);

  Kind kind() const { return kind_; }
  SamplingOptions options() const;

 private:
  SamplingStrategy(Kind kind, std::int64_t k, double p, double temperature)
      : kind_(kind), k_(k), p_(p), temperature_(temperature) {}

  Kind kind_;
  std::int64_t k_;
  double p_;
  double temperature_;
};

/// A chosen token, its logit, and the probability with which it was drawn.
struct SampledToken {
  std::int32_t token_id = 0;
  float logit = 0;
  double probability = 1;
};

/// Draws a token from logits (vocabulary), or from the last row of (..., vocabulary): a pure function of its
/// arguments, the same on every machine. Throws InferenceError (Sampling) for logits that are NaN or
/// infinite.
std::int32_t sample_token(const Tensor& logits, const SamplingStrategy& strategy, std::uint64_t seed = 0);
SampledToken sample_token_with_metadata(const Tensor& logits, const SamplingStrategy& strategy,
                                        std::uint64_t seed = 0);

/// The logits (vocabulary) with those of `tokens` made less likely, each once however often it occurs:
/// positive ones are divided by the penalty, negative ones multiplied (Keskar et al. 2019). Throws
/// InferenceError (InvalidSampling) unless the penalty is positive; ids outside of the vocabulary are passed
/// over.
Tensor apply_repetition_penalty(const Tensor& logits, std::span<const std::int32_t> tokens, double penalty);

}  // namespace caldera::v1
