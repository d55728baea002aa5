#include "training/evaluate/evaluate.h"

#include <fmt/format.h>

#include "engine/runtime/runtime.h"

namespace caldera {

Evaluation evaluate(const ObjectiveModels& models, const Objective& objective,
                    std::span<const Batch> batches) {
  const EvaluationMode mode(models.policy());
  Evaluation result;
  MetricTotals metrics;
  double sum = 0;
  std::int64_t counted = 0;
  for (const Batch& given : batches) {
    const Batch batch = objective.prepare(models, given, /*seed=*/static_cast<std::uint64_t>(counted));
    const std::int64_t count = objective.count(batch);
    counted += count;
    const ObjectiveSums sums = objective.sums(models, batch);
    std::vector<LazyTensor> outputs{sums.loss};
    for (const MetricSum& metric : sums.metrics) outputs.push_back(metric.sum);
    eval(outputs);
    sum += sums.loss.item<double>();
    std::vector<double> values;
    for (const MetricSum& metric : sums.metrics) values.push_back(metric.sum.item<double>());
    metrics.add(sums.metrics, values, count);
    result.tokens += batch.counted();
  }
  if (counted == 0) throw ValueError("evaluate: the data hold no token that counts");
  result.loss = sum / static_cast<double>(counted);
  result.metrics = metrics.means();
  return result;
}

Evaluation evaluate(CausalLM& model, std::span<const Batch> batches) {
  return evaluate(ObjectiveModels(model), NextToken(), batches);
}

void check_fits(const TokenDataset& data, const Objective& objective) {
  const DataNeeds needs = objective.needs();
  if (data.kind() != needs.kind || data.sequences_per_example() != objective.sequences_per_example())
    throw ValueError(fmt::format("{} trains on {}; the data hold {}", objective.name(),
                                 description_of(needs.kind), description_of(data.kind())));
  if (needs.labels && !data.is_labelled())
    throw ValueError(
        fmt::format("{} trains on labelled texts; give every line a \"label\" of true, false or a "
                    "whole number",
                    objective.name()));
}

void check_batches(const Objective& objective, std::int64_t batch_size, bool packed) {
  const DataNeeds needs = objective.needs();
  if (packed && (needs.kind != ExampleKind::text || needs.labels))
    throw ValueError(fmt::format("{} takes no packed rows: train without packing", objective.name()));
  if (batch_size < needs.least_batch)
    throw ValueError(fmt::format("{} compares the examples of a batch: give a batch size of at least {}",
                                 objective.name(), needs.least_batch));
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
