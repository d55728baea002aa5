// Evaluation: how well a model predicts a dataset.
#pragma once

#include <cstdint>
#include <span>

#include "lm/models/causal_lm.h"
#include "training/data/dataset.h"
#include "training/objectives/loss.h"

namespace caldera {

struct Evaluation {
  double loss = 0;          ///< mean negative log-likelihood, in nats, over the predictions that count
  std::int64_t tokens = 0;  ///< predictions that count
};

/// Loss of a batch, lazily: the sum over the predictions that count, and their number.
CrossEntropySum batch_loss(CausalLM& model, const Batch& batch);

/// The mean over all predictions of all batches together, each with the same weight whatever batch it is in.
/// Evaluates one batch at a time, in evaluation mode; the model's mode is put back. Throws ValueError when
/// nothing counts, or for a token outside of the vocabulary.
Evaluation evaluate(CausalLM& model, std::span<const Batch> batches);

/// Throws ValueError when a token of the dataset lies outside of the model's vocabulary, or a sequence is
/// longer than its positions.
void check_fits(const TokenDataset& data, const ModelConfig& config);

}  // namespace caldera
