#include "training/objectives/next_token.h"

#include <memory>

#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {

CrossEntropySum batch_loss(CausalLM& model, const Batch& batch) {
  return head_cross_entropy_sum(
      batch_hidden_states(model, batch), model.config().vocab_size,
      [&](const LazyTensor& rows) { return model.logits(rows); }, batch_targets(model, batch),
      batch_weights(model, batch));
}

ObjectiveSums NextToken::sums(const ObjectiveModels& models, const Batch& batch) const {
  return {.loss = batch_loss(models.policy(), batch).loss, .metrics = {}};
}

detail::ObjectiveKind next_token_objective() {
  return {.name = "sft", .options = {}, .make = [](const ObjectiveOptions&) {
            return std::make_unique<NextToken>();
          }};
}

}  // namespace caldera
