// ModelDrafter: a smaller model guesses what a larger one will say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lm/generate/drafter.h"
#include "lm/generate/feeder.h"

namespace caldera {

/// Draws from a model of the same vocabulary, with a cache of its own.
class ModelDrafter final : public Drafter {
 public:
  /// Keeps a reference to `model` and puts it into evaluation mode. `sampling` is best what the checking
  /// model samples with: the nearer the distributions, the more guesses are kept.
  ModelDrafter(CausalLM& model, const SamplingOptions& sampling);

  const CausalLM& model() const { return model_; }
  /// Nothing where the text is longer than the model's positions, or has tokens that it does not know.
  TokenDraft propose(const SamplingContext& text, std::int64_t count) override;

 private:
  void feed(std::span<const std::int32_t> seen);

  CausalLM& model_;
  EvaluationMode mode_;
  Sampler sampler_;
  std::optional<Feeder> feeder_;
  std::vector<std::int32_t> fed_;
};

}  // namespace caldera
