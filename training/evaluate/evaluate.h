// Evaluation: how well a model does on a dataset.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lm/models/causal_lm.h"
#include "training/data/dataset.h"
#include "training/objectives/metric.h"
#include "training/objectives/next_token.h"
#include "training/objectives/objective.h"

namespace caldera {

namespace distributed {
class Communicator;
}  // namespace distributed

struct Evaluation {
  double loss = 0;              ///< mean over what counts; of the next-token objective in nats a prediction
  std::int64_t tokens = 0;      ///< predictions that count
  std::vector<Metric> metrics;  ///< the objective's, as means over what counts
};

/// The mean over all that counts in all batches together, each with the same weight whatever batch it is in.
/// Evaluates one batch at a time, in evaluation mode; the model's mode is put back. Throws ValueError when
/// nothing counts, or for a token outside of the vocabulary.
Evaluation evaluate(const ObjectiveModels& models, const Objective& objective,
                    std::span<const Batch> batches);
/// Evaluates the same where ranks share the batches, which must be the same on all (each of a share of them
/// alone): the figures do not depend on how many they are. Null: none do.
Evaluation evaluate(const ObjectiveModels& models, const Objective& objective, std::span<const Batch> batches,
                    distributed::Communicator* ranks);
/// Evaluates the next-token objective.
Evaluation evaluate(CausalLM& model, std::span<const Batch> batches);

/// Throws ValueError when a token of the dataset is outside of the model's vocabulary, or a sequence is
/// longer than its positions.
void check_fits(const TokenDataset& data, const ModelConfig& config);
/// Throws ValueError when the dataset does not hold what the objective trains on.
void check_fits(const TokenDataset& data, const Objective& objective);
/// Throws ValueError when the objective cannot train on batches of so many examples, or on packed rows.
void check_batches(const Objective& objective, std::int64_t batch_size, bool packed);

}  // namespace caldera
