// Sampler: picks the next token from a row of logits. Host code, deterministic for a given seed on every
// machine.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// How the next token is chosen. The filters apply in the order of Hugging Face's `generate`: repetition
/// penalty, temperature, top-k, top-p, min-p; then one token is drawn from what is left.
struct SamplingOptions {
  double temperature = 0;  ///< 0 takes the most likely token (the lowest id of equals)
  std::int64_t top_k = 0;  ///< keep the k most likely; 0 keeps all
  double top_p = 1;        ///< keep the smallest set of at least this probability; 1 keeps all
  double min_p = 0;        ///< keep what has at least this share of the best token's probability
  /// Keskar et al. 2019: once per distinct token seen so far; 1 changes nothing.
  double repetition_penalty = 1;
  std::uint64_t seed = 0;

  /// Whether the choice is most_likely() of the logits.
  bool is_greedy() const { return temperature == 0 && repetition_penalty == 1; }
  /// Throws ValueError naming the option that lies outside of its domain.
  void validate() const;
};

/// The most likely token of each row of logits (..., vocabulary), computed where the logits are: ids
/// (..., 1) of i32, the lowest of equals. In place of a row that the sampler refuses stands a negative
/// number, which checked_choice() throws for.
LazyTensor most_likely(const LazyTensor& logits);
/// The id, as it is. Throws ValueError, as Sampler::next does, for what stands for a row that it refuses.
std::int32_t checked_choice(std::int32_t id);

/// Divides positive and multiplies negative logits by `penalty`, once for every distinct id of `seen`. Ids
/// outside of the logits are passed over.
void apply_repetition_penalty(std::span<float> logits, std::span<const std::int32_t> seen, double penalty);

/// Not thread-safe: every draw advances the generator.
class Sampler {
 public:
  /// Throws ValueError as SamplingOptions::validate.
  explicit Sampler(const SamplingOptions& options);

  /// The next token after `seen` (the prompt and all tokens generated so far). Throws ValueError when there
  /// are no logits, one of them is NaN or infinity, or all are -infinity (which rules a token out).
  std::int32_t next(std::span<const float> logits, std::span<const std::int32_t> seen);

 private:
  struct Candidate {
    float logit;
    std::int32_t id;
  };

  std::int32_t draw(std::span<const float> logits);
  void order(std::size_t count);
  double uniform();

  SamplingOptions options_;
  std::mt19937_64 engine_;
  std::vector<float> penalised_;       // scratch
  std::vector<Candidate> candidates_;  // scratch; the first ordered_ are the most likely, in order
  std::size_t ordered_ = 0;
  std::vector<double> probabilities_;  // scratch
};

}  // namespace caldera
