// ModelDrafter: a smaller model guesses what a larger one will say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lm/generate/drafter.h"
#include "lm/generate/feeder.h"

namespace caldera {

/// Draws from a model of the same vocabulary, with a cache of its own, which is made for the first draft: one
/// of these for each sequence costs nothing before. Several may share a model, on one thread.
class ModelDrafter final : public Drafter {
 public:
  /// Keeps a reference to `model`, which is in evaluation mode from the first draft on. `sampling` is best
  /// what the checking model samples with: the nearer the distributions, the more guesses are kept.
  ModelDrafter(CausalLM& model, const SamplingOptions& sampling);

  const CausalLM& model() const { return model_; }
  /// Nothing where the text is longer than the model's positions, or has tokens that it does not know.
  TokenDraft propose(const SamplingContext& text, std::int64_t count) override;

 private:
  void feed(std::span<const std::int32_t> seen);

  CausalLM& model_;
  std::optional<EvaluationMode> mode_;
  Sampler sampler_;
  std::optional<Feeder> feeder_;
  std::vector<std::int32_t> fed_;
};

}  // namespace caldera
