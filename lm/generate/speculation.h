// Speculation: makes the drafters of speculative decoding, one for each sequence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "lm/generate/drafter.h"
#include "lm/generate/sampling/sampling_options.h"
#include "lm/models/causal_lm.h"

namespace caldera {

/// Says how tokens are guessed ahead of the model; at most one of `lookup` and `draft_model`.
struct SpeculationOptions {
  bool lookup = false;                ///< as the sequence went on where its last tokens occurred before
  std::filesystem::path draft_model;  ///< folder of a smaller model with the same vocabulary; empty: none
  std::int64_t tokens = 4;            ///< guessed at a time

  bool drafts() const { return lookup || !draft_model.empty(); }
};

/// Holds what the drafters of one model share: the draft model's weights.
class Speculation {
 public:
  /// Reads the draft model, if there is one, to the device and type of `model`. Throws FileError where it
  /// cannot be read, ValueError where its vocabulary has another size, or for options that contradict each
  /// other.
  Speculation(const CausalLM& model, SpeculationOptions options);

  const SpeculationOptions& options() const { return options_; }
  /// Makes a drafter for one sequence that is sampled like this, on any thread; null where nothing is
  /// guessed. It must not outlive this.
  std::shared_ptr<Drafter> drafter(const SamplingOptions& sampling) const;

 private:
  SpeculationOptions options_;
  std::unique_ptr<CausalLM> model_;
};

}  // namespace caldera
