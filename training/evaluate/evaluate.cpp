#include "training/evaluate/evaluate.h"

#include <fmt/format.h>

#include "engine/runtime/runtime.h"

namespace caldera {

Evaluation evaluate(const ObjectiveModels& models, const Objective& objective,
                    std::span<const Batch> batches) {
  const EvaluationMode mode(models.policy());
  std::int64_t count = 0;
  for (const Batch& batch : batches) count += objective.count(batch);
  if (count == 0) throw ValueError("evaluate: the data hold no token that counts");

  Evaluation result;
  double sum = 0;
  for (const Batch& batch : batches) {
    const ObjectiveSums sums = objective.sums(models, batch);
    std::vector<LazyTensor> outputs{sums.loss};
    for (const MetricSum& metric : sums.metrics) outputs.push_back(metric.sum);
    eval(outputs);
    sum += sums.loss.item<double>();
    std::vector<double> values;
    for (const MetricSum& metric : sums.metrics) values.push_back(metric.sum.item<double>());
    add_metrics(result.metrics, sums.metrics, values, count);
    result.tokens += batch.counted();
  }
  result.loss = sum / static_cast<double>(count);
  return result;
}

Evaluation evaluate(CausalLM& model, std::span<const Batch> batches) {
  return evaluate(ObjectiveModels(model), NextToken(), batches);
}

void check_fits(const TokenDataset& data, const ModelConfig& config) {
  if (data.max_token_id() >= config.vocab_size) {
    throw ValueError(fmt::format(
        "the data hold token id {}, outside of the model's vocabulary of {}; is this the model's tokenizer?",
        data.max_token_id(), config.vocab_size));
  }
  if (data.seq_len() > config.max_positions()) {
    throw ValueError(fmt::format("sequence length {} is more than the model's {} positions", data.seq_len(),
                                 config.max_positions()));
  }
}

}  // namespace caldera
