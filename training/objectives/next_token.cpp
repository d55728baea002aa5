#include "training/objectives/next_token.h"

#include <memory>

#include "ops/core/sum.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {

CrossEntropySum batch_loss(CausalLM& model, const Batch& batch) {
  const LazyTensor weights = batch_weights(model, batch);
  const ModelConfig& config = model.config();
  const bool few = batch.batch_size * batch.seq_len <= rows_at_a_time(config.vocab_size, config.hidden_size);
  // Of a sum over tokens the gradient of a trained head needs no logits twice.
  if (!few && !is_head_trained(model)) return {-sum(token_log_probabilities(model, batch)), sum(weights)};
  return head_cross_entropy_sum(
      batch_hidden_states(model, batch), config.vocab_size,
      [&](const LazyTensor& rows) { return model.logits(rows); }, batch_targets(model, batch), weights);
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
