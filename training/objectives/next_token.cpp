#include "training/objectives/next_token.h"

#include <memory>

#include "training/objectives/objective_kind.h"

namespace caldera {

CrossEntropySum batch_loss(CausalLM& model, const Batch& batch) {
  const Shape shape{batch.batch_size, batch.seq_len};
  const LazyTensor hidden = model.hidden_states(model.make_ids(batch.inputs, batch.batch_size), nullptr);
  return head_cross_entropy_sum(
      hidden, model.config().vocab_size, [&](const LazyTensor& rows) { return model.logits(rows); },
      LazyTensor::from_vector(batch.targets, shape, model.device()),
      LazyTensor::from_vector(batch.weights, shape, model.device()));
}

ObjectiveSums NextToken::sums(const ObjectiveModels& models, const Batch& batch) const {
  return {.loss = batch_loss(models.policy(), batch).loss, .metrics = {}};
}

detail::ObjectiveKind next_token_objective() {
  return {.name = "sft", .more = {}, .make = [](const ObjectiveOptions&) {
            return std::make_unique<NextToken>();
          }};
}

}  // namespace caldera
