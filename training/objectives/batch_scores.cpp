#include "training/objectives/batch_scores.h"

#include <algorithm>
#include <set>
#include <vector>

#include "engine/graph/graph.h"
#include "lm/embed/pooling.h"
#include "lm/nn/attention/packed_texts.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "training/objectives/loss.h"

namespace caldera {

LazyTensor batch_hidden_states(CausalLM& model, const Batch& batch) {
  const LazyTensor ids = model.make_ids(batch.inputs, batch.batch_size);
  if (!batch.packed()) return model.hidden_states(ids, nullptr);
  PackedTexts packed(batch.lengths, batch.seq_len, model.device());
  return model.hidden_states(ids, &packed);
}

LazyTensor batch_targets(const CausalLM& model, const Batch& batch) {
  return LazyTensor::from_vector(batch.targets, Shape{batch.batch_size, batch.seq_len}, model.device());
}

LazyTensor batch_weights(const CausalLM& model, const Batch& batch) {
  return LazyTensor::from_vector(batch.weights, Shape{batch.batch_size, batch.seq_len}, model.device());
}

LazyTensor token_log_probabilities(CausalLM& model, const Batch& batch) {
  const LazyTensor log_p = log_probabilities_of_head(
      batch_hidden_states(model, batch), model.config().vocab_size,
      [&model](const LazyTensor& rows) { return model.logits(rows); }, batch_targets(model, batch),
      {.is_trained = is_head_trained(model), .matrix = model.linear_head()});
  const LazyTensor weights = batch_weights(model, batch);
  // Selected and not only multiplied: padding may be anything.
  return where(equal(weights, 0.0), zeros_like(log_p), log_p * weights);
}

LazyTensor row_log_probabilities(CausalLM& model, const Batch& batch) {
  return sum(token_log_probabilities(model, batch), {1});
}

LazyTensor row_lengths(const CausalLM& model, const Batch& batch) {
  std::vector<float> lengths;
  for (std::int64_t row = 0; row < batch.batch_size; ++row) {
    const auto first = batch.weights.begin() + static_cast<std::ptrdiff_t>(row * batch.seq_len);
    const auto counted = std::count_if(first, first + static_cast<std::ptrdiff_t>(batch.seq_len),
                                       [](float weight) { return weight != 0; });
    lengths.push_back(static_cast<float>(std::max<std::ptrdiff_t>(1, counted)));
  }
  return LazyTensor::from_vector(lengths, Shape{batch.batch_size}, model.device());
}

std::vector<std::int32_t> row_tokens(const Batch& batch, std::int64_t row) {
  const std::int64_t begin = row * batch.seq_len;
  std::int64_t last = batch.seq_len - 1;  // prediction that counts
  while (last > 0 && batch.weights[static_cast<std::size_t>(begin + last)] == 0) --last;
  const auto at = batch.inputs.begin() + static_cast<std::ptrdiff_t>(begin);
  std::vector<std::int32_t> tokens(at, at + static_cast<std::ptrdiff_t>(last) + 1);
  tokens.push_back(batch.targets[static_cast<std::size_t>(begin + last)]);
  return tokens;
}

std::int64_t first_counted(const Batch& batch, std::int64_t row) {
  std::int64_t first = 0;
  while (first + 1 < batch.seq_len &&
         batch.weights[static_cast<std::size_t>(row * batch.seq_len + first)] == 0)
    ++first;
  return first;
}

WholeRows whole_rows(const CausalLM& model, const Batch& batch) {
  std::vector<std::vector<std::int32_t>> texts;
  std::size_t longest = 1;
  for (std::int64_t row = 0; row < batch.batch_size; ++row) {
    texts.push_back(row_tokens(batch, row));
    longest = std::max(longest, texts.back().size());
  }
  const auto most = static_cast<std::size_t>(model.config().max_positions());
  const std::size_t width = std::min((longest + 15) / 16 * 16, most);
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> present;
  for (std::vector<std::int32_t>& text : texts) {
    const std::size_t length = std::min(text.size(), width);
    text.resize(width, 0);
    ids.insert(ids.end(), text.begin(), text.end());
    for (std::size_t i = 0; i < width; ++i) present.push_back(i < length ? 1 : 0);
  }
  const Shape shape{batch.batch_size, static_cast<std::int64_t>(width)};
  return {model.make_ids(ids, batch.batch_size),
          astype(LazyTensor::from_vector(present, shape, model.device()), DType::boolean)};
}

LazyTensor row_scores(CausalLM& model, const Batch& batch) {
  const WholeRows rows = whole_rows(model, batch);
  return model.scores(pool(model.hidden_states(rows.ids), rows.present, Pooling::last));
}

LazyTensor every(const LazyTensor& rows, std::int64_t first, std::int64_t stride) {
  return slice(rows, 0, first, std::nullopt, stride);
}

bool is_head_trained(CausalLM& model) {
  std::set<const Node*> trained;
  for (const Parameter& parameter : model.trainable_parameters()) trained.insert(&parameter.tensor->node());
  const LazyTensor row =
      LazyTensor::zeros(Shape{1, model.config().hidden_size}, model.dtype(), model.device());
  const Graph graph({model.logits(row)});
  return std::ranges::any_of(graph.entries(),
                             [&](const Graph::Entry& entry) { return trained.contains(entry.node.get()); });
}

}  // namespace caldera
