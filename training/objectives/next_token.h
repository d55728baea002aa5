// The next-token objective: the cross-entropy of each prediction that counts.
#pragma once

#include "training/objectives/loss.h"
#include "training/objectives/objective.h"

namespace caldera {

/// Loss of a batch, lazily: the sum over the predictions that count, in nats, and their number.
CrossEntropySum batch_loss(CausalLM& model, const Batch& batch);

/// Supervised fine-tuning and pre-training: they differ only in which predictions of their data count.
class NextToken final : public Objective {
 public:
  std::string_view name() const override { return "sft"; }
  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override;
};

}  // namespace caldera
