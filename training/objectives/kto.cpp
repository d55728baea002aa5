// KTO: Kahneman-Tversky optimisation (Ethayarajh et al. 2024), as TRL computes it. Each answer is good or bad
// by itself; there are no pairs.
#include <algorithm>
#include <memory>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/sum.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "ops/reduce/mean.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {
namespace {

/// Each row's prompt with the answer of the row before it (the first with that of the last).
Batch mismatched(const Batch& batch) {
  Batch result = batch;
  std::ranges::fill(result.inputs, 0);
  std::ranges::fill(result.targets, 0);
  std::ranges::fill(result.weights, 0.0F);
  const std::int64_t rows = batch.batch_size, width = batch.seq_len;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int32_t> tokens = row_tokens(batch, row);
    const std::vector<std::int32_t> other = row_tokens(batch, (row + rows - 1) % rows);
    const std::int64_t prompt = first_counted(batch, row) + 1;
    tokens.resize(static_cast<std::size_t>(prompt));
    tokens.insert(tokens.end(), other.begin() + first_counted(batch, (row + rows - 1) % rows) + 1,
                  other.end());
    const auto length = std::min(static_cast<std::int64_t>(tokens.size()) - 1, width);
    for (std::int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<std::size_t>(row * width + i), from = static_cast<std::size_t>(i);
      result.inputs[at] = tokens[from];
      result.targets[at] = tokens[from + 1];
      result.weights[at] = i + 1 >= prompt ? 1.0F : 0.0F;
    }
  }
  return result;
}

class KahnemanTversky final : public Objective {
 public:
  explicit KahnemanTversky(const ObjectiveOptions& options)
      : beta_(options.more.at("beta")),
        desirable_(options.more.at("desirable_weight")),
        undesirable_(options.more.at("undesirable_weight")) {}

  std::string_view name() const override { return "kto"; }
  bool needs_reference() const override { return true; }
  DataNeeds needs() const override { return {.labels = true, .completions_only = true, .least_batch = 2}; }
  std::int64_t count(const Batch& batch) const override { return batch.batch_size; }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    const LazyTensor ratios = log_ratios(models, batch);
    const LazyTensor kl = divergence(models, batch);
    std::vector<float> signs, weights, good;
    for (const float label : batch.labels) {
      const bool is_good = label != 0;
      signs.push_back(is_good ? 1.0F : -1.0F);
      weights.push_back(static_cast<float>(is_good ? desirable_ : undesirable_));
      good.push_back(is_good ? 1.0F : 0.0F);
    }
    const auto tensor = [&](const std::vector<float>& values) {
      return LazyTensor::from_vector(values, Shape{batch.batch_size}, models.policy().device());
    };
    const LazyTensor value = sigmoid((ratios - kl) * tensor(signs) * beta_);
    const auto goods = std::ranges::count(good, 1.0F);
    const LazyTensor is_good = tensor(good), rewards = ratios * beta_;
    return {.loss = sum((1 - value) * tensor(weights)),
            .metrics = {{"rewards/chosen", sum(rewards * is_good), goods},
                        {"rewards/rejected", sum(rewards * (1 - is_good)), batch.batch_size - goods},
                        {"kl", kl * static_cast<double>(batch.batch_size)}}};
  }

 private:
  static LazyTensor log_ratios(const ObjectiveModels& models, const Batch& batch) {
    const LazyTensor reference =
        models.reference([&](CausalLM& model) { return row_log_probabilities(model, batch); });
    return row_log_probabilities(models.policy(), batch) - reference;
  }

  /// How far the model is from the reference, estimated from answers to other prompts; at least 0. A batch of
  /// one row, the last of a validation, has none, and 0 is taken.
  static LazyTensor divergence(const ObjectiveModels& models, const Batch& batch) {
    if (batch.batch_size < 2) return LazyTensor::zeros(Shape{}, DType::f32, models.policy().device());
    return stop_gradient(clip(mean(log_ratios(models, mismatched(batch))), 0.0, std::nullopt));
  }

  double beta_;
  double desirable_;
  double undesirable_;
};

}  // namespace

detail::ObjectiveKind kto_objective() {
  return {.name = "kto",
          .options =
              {{.name = "beta",
                .help = "How strongly the model is held to the reference; of orpo the weight of the odds",
                .otherwise = 0.1,
                .low_is_out = true},
               {.name = "desirable_weight", .help = "Weight of the losses of good answers", .otherwise = 1},
               {.name = "undesirable_weight", .help = "Weight of the losses of bad answers", .otherwise = 1}},
          .make = [](const ObjectiveOptions& options) { return std::make_unique<KahnemanTversky>(options); }};
}

}  // namespace caldera
