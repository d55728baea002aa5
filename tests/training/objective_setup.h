// What tests of objectives share: a small model with an adapter, data, and log-probabilities by plain loops
// in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/testing/gradcheck.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/support/tiny_llama.h"
#include "training/data/dataset.h"
#include "training/evaluate/evaluate.h"
#include "training/objectives/objective.h"

namespace caldera::testing {

/// One layer, 16 features, the tokens of ByteTokenizer, tied embeddings.
inline ModelConfig objective_config(double initializer_range = 0.02) {
  return testing::tiny_llama(
      {.layers = 1, .heads = 2, .kv_heads = 1, .initializer_range = initializer_range});
}

inline std::unique_ptr<Llama> plain_model(Device device = Device::cpu(), std::uint64_t seed = 5) {
  auto model = std::make_unique<Llama>(objective_config(), device, seed);
  model->set_training(false);
  return model;
}

/// plain_model() with an adapter on every projection, whose B is not zero. With an `initializer_range` of 0.1
/// f32 rounds its gradients least: to 1e-6, not 2e-5.
inline std::unique_ptr<Llama> adapted_model(Device device = Device::cpu(), double dropout = 0,
                                            double initializer_range = 0.02) {
  auto model = std::make_unique<Llama>(objective_config(initializer_range), device, /*seed=*/5);
  apply_lora(*model, {.rank = 2, .alpha = 4, .dropout = dropout}, {"all-linear"}, 1);
  // B is zero at first, and the adapter would change nothing.
  std::uint64_t seed = 70;
  model->visit_projections([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
    if (auto* lora = dynamic_cast<LoRALinear*>(slot.get()))
      lora->lora_b() = random_normal(lora->lora_b().shape(), seed++, DType::f32, device) * 0.3;
  });
  model->materialize();
  return model;
}

/// Gives every parameter f64, so that the model computes in it.
inline void compute_in_f64(Module& module) {
  for (const Parameter& parameter : module.parameters()) {
    *parameter.tensor = astype(*parameter.tensor, DType::f64);
    parameter.tensor->eval();
  }
}

/// `n` pairs of answers of several lengths.
inline TokenDataset answer_pairs(int n) {
  ExampleSet set;
  for (int i = 0; i < n; ++i)
    set.examples.push_back({.prompt = "q" + std::to_string(i),
                            .text = std::string(static_cast<std::size_t>(2 + i % 3), 'a'),
                            .rejected = std::string(static_cast<std::size_t>(1 + i % 4), 'b'),
                            .kind = ExampleKind::preference});
  return TokenDataset(set, ByteTokenizer(), {.seq_len = 32});
}

/// All of a dataset in one batch.
inline Batch whole(const TokenDataset& data) { return batches_for_evaluation(data, data.size()).at(0); }

/// The sum of the log-probabilities of what counts in each row, by loops over the logits.
inline std::vector<double> row_log_p(CausalLM& model, const Batch& batch) {
  const LazyTensor computed = model(model.make_ids(batch.inputs, batch.batch_size));
  const std::vector<double> logits = astype(computed, DType::f64).to_vector<double>();
  const std::int64_t classes = model.config().vocab_size;
  std::vector<double> rows(static_cast<std::size_t>(batch.batch_size), 0.0);
  for (std::size_t at = 0; at < batch.targets.size(); ++at) {
    if (batch.weights[at] == 0) continue;
    const double* own = logits.data() + static_cast<std::ptrdiff_t>(at) * classes;
    double total = 0;
    for (std::int64_t c = 0; c < classes; ++c) total += std::exp(own[c]);
    rows[at / static_cast<std::size_t>(batch.seq_len)] += own[batch.targets[at]] - std::log(total);
  }
  return rows;
}

/// The number of predictions of each row that count.
inline std::vector<double> row_lengths_of(const Batch& batch) {
  std::vector<double> lengths(static_cast<std::size_t>(batch.batch_size), 0.0);
  for (std::size_t at = 0; at < batch.weights.size(); ++at)
    lengths[at / static_cast<std::size_t>(batch.seq_len)] += batch.weights[at];
  return lengths;
}

/// The metric of this name; NaN where there is none.
inline double value_of(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& metric : metrics)
    if (metric.name == name) return metric.value;
  return std::nan("");
}

/// Compares the gradient of the objective's loss, with respect to all that is trained, with central
/// differences in f64.
inline GradcheckResult check_objective(const Objective& objective, const ObjectiveModels& models,
                                       const Batch& batch, const GradcheckOptions& options = {.fast = true}) {
  std::vector<Parameter> trained = models.policy().trainable_parameters();
  std::vector<LazyTensor> values;
  for (const Parameter& parameter : trained) values.push_back(*parameter.tensor);
  const auto loss = [&](std::span<const LazyTensor> given) {
    for (std::size_t i = 0; i < trained.size(); ++i) *trained[i].tensor = given[i];
    return objective.sums(models, batch).loss;
  };
  const GradcheckResult result = gradcheck(loss, values, options);
  for (std::size_t i = 0; i < trained.size(); ++i) *trained[i].tensor = values[i];
  return result;
}

}  // namespace caldera::testing
