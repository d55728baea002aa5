#include "training/evaluate/evaluate.h"

#include <fmt/format.h>

#include "engine/distributed/communicator.h"
#include "engine/runtime/runtime.h"

namespace caldera {

namespace {

/// What a batch gives: the sum of its losses, what counts and its tokens, then each metric's sum and count.
constexpr std::size_t kOwnFigures = 3;

std::vector<double> figures_of(const ObjectiveModels& models, const Objective& objective, const Batch& batch,
                               std::vector<MetricSum>& names) {
  const auto count = static_cast<double>(objective.count(batch));
  const ObjectiveSums sums = objective.sums(models, batch);
  std::vector<LazyTensor> outputs{sums.loss};
  for (const MetricSum& metric : sums.metrics) outputs.push_back(metric.sum);
  eval(outputs);
  std::vector<double> figures{sums.loss.item<double>(), count, static_cast<double>(batch.counted())};
  names.clear();
  for (const MetricSum& metric : sums.metrics) {
    figures.push_back(metric.sum.item<double>());
    figures.push_back(metric.count < 0 ? count : static_cast<double>(metric.count));
    names.push_back({.name = metric.name, .sum = {}});
  }
  return figures;
}

/// Puts what each rank has of every size()-th batch into the order of batches.
std::vector<double> in_order(const std::vector<std::vector<double>>& of_ranks, std::size_t batches,
                             std::size_t width) {
  std::vector<double> all;
  for (std::size_t i = 0; i < batches; ++i) {
    const std::vector<double>& from = of_ranks[i % of_ranks.size()];
    const auto at = from.begin() + static_cast<std::ptrdiff_t>(i / of_ranks.size() * width);
    all.insert(all.end(), at, at + static_cast<std::ptrdiff_t>(width));
  }
  return all;
}

}  // namespace

Evaluation evaluate(const ObjectiveModels& models, const Objective& objective, std::span<const Batch> batches,
                    distributed::Communicator* ranks) {
  const EvaluationMode mode(models.policy());
  // What the model writes itself depends on what was written before.
  const bool is_shared =
      ranks != nullptr && ranks->size() > 1 && objective.needs().kind != ExampleKind::prompt;
  const auto rank = static_cast<std::size_t>(is_shared ? ranks->rank() : 0);
  const auto size = static_cast<std::size_t>(is_shared ? ranks->size() : 1);
  std::vector<MetricSum> names;
  std::vector<double> figures;
  std::int64_t written = 0;
  // A rank that has fewer batches than others computes its first again, or that of all: it knows the metrics
  // then, and computes as often as the others, whose weights it may have a part of.
  const std::size_t first = rank < batches.size() ? rank : 0;
  for (std::size_t round = 0; round < batches.size(); round += size) {
    const std::size_t i = round + rank < batches.size() ? round + rank : first;
    const Batch batch = objective.prepare(models, batches[i], /*seed=*/static_cast<std::uint64_t>(written));
    written += objective.count(batch);
    const std::vector<double> own = figures_of(models, objective, batch, names);
    figures.insert(figures.end(), own.begin(), own.end());
  }
  const std::size_t width = kOwnFigures + 2 * names.size();
  if (is_shared) figures = in_order(ranks->gather(figures), batches.size(), width);
  Evaluation result;
  MetricTotals metrics;
  double sum = 0, counted = 0;
  for (std::size_t at = 0; at + width <= figures.size(); at += width) {
    sum += figures[at];
    counted += figures[at + 1];
    result.tokens += static_cast<std::int64_t>(figures[at + 2]);
    std::vector<double> values;
    for (std::size_t k = 0; k < names.size(); ++k) {
      values.push_back(figures[at + kOwnFigures + 2 * k]);
      names[k].count = static_cast<std::int64_t>(figures[at + kOwnFigures + 2 * k + 1]);
    }
    metrics.add(names, values, 0);
  }
  if (counted == 0) throw ValueError("evaluate: the data hold no token that counts");
  result.loss = sum / counted;
  result.metrics = metrics.means();
  return result;
}

Evaluation evaluate(const ObjectiveModels& models, const Objective& objective,
                    std::span<const Batch> batches) {
  return evaluate(models, objective, batches, nullptr);
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
