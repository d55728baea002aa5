#include "training/evaluate/evaluate.h"

#include <fmt/format.h>

#include "training/objectives/loss.h"

namespace caldera {
CrossEntropySum batch_loss(CausalLM& model, const Batch& batch) {
  const Shape shape{batch.batch_size, batch.seq_len};
  const LazyTensor hidden = model.hidden_states(model.make_ids(batch.inputs, batch.batch_size), nullptr);
  return head_cross_entropy_sum(
      hidden, model.config().vocab_size, [&](const LazyTensor& rows) { return model.logits(rows); },
      LazyTensor::from_vector(batch.targets, shape, model.device()),
      LazyTensor::from_vector(batch.weights, shape, model.device()));
}

Evaluation evaluate(CausalLM& model, std::span<const Batch> batches) {
  const EvaluationMode mode(model);
  double sum = 0;
  Evaluation result;
  for (const Batch& batch : batches) {
    const LazyTensor loss = batch_loss(model, batch).loss;
    sum += loss.item<double>();
    result.tokens += batch.counted();
  }
  if (result.tokens == 0) throw ValueError("evaluate: the data hold no token that counts");
  result.loss = sum / static_cast<double>(result.tokens);
  return result;
}

void check_fits(const TokenDataset& data, const ModelConfig& config) {
  if (data.max_token_id() >= config.vocab_size) {
    throw ValueError(fmt::format(
        "the data hold token id {}, outside of the model's vocabulary of {}; is this the model's tokenizer?",
        data.max_token_id(), config.vocab_size));
  }
  if (data.seq_len() > config.max_position_embeddings) {
    throw ValueError(fmt::format("sequence length {} is more than the model's {} positions", data.seq_len(),
                                 config.max_position_embeddings));
  }
}

}  // namespace caldera
