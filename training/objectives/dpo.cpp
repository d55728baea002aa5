// DPO: direct preference optimisation (Rafailov et al. 2023), with TRL's names. The model is to prefer the
// chosen answer of a pair to the rejected one by more than the reference does.
#include <memory>

#include "engine/base/error.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/sum.h"
#include "ops/nn/activations.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {
namespace {

class DirectPreference final : public Objective {
 public:
  explicit DirectPreference(const ObjectiveOptions& options)
      : beta_(options.more.at("beta")),
        smoothing_(options.more.at("label_smoothing")),
        loss_type_(options.words.at("loss_type")) {
    if (smoothing_ > 0 && loss_type_ != "sigmoid")
      throw ValueError("dpo: label_smoothing goes with loss_type sigmoid alone");
  }

  std::string_view name() const override { return "dpo"; }
  std::int64_t sequences_per_example() const override { return 2; }
  bool needs_reference() const override { return true; }
  std::int64_t count(const Batch& batch) const override { return batch.batch_size / 2; }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    const LazyTensor policy = row_log_probabilities(models.policy(), batch);
    const LazyTensor reference =
        models.reference([&](CausalLM& model) { return row_log_probabilities(model, batch); });
    const LazyTensor ratios = policy - reference;  // of log-probabilities, a row each
    const LazyTensor chosen = every(ratios, 0, 2) * beta_, rejected = every(ratios, 1, 2) * beta_;
    return {.loss = sum(losses(ratios, models.policy(), batch)),
            .metrics = {{"rewards/chosen", sum(chosen)},
                        {"rewards/rejected", sum(rejected)},
                        {"rewards/margins", sum(chosen - rejected)},
                        {"rewards/accuracies", sum(astype(greater(chosen, rejected), DType::f32))}}};
  }

 private:
  // A loss for each pair. Lengths go to the device only where they are read: no plan counts what is not.
  LazyTensor losses(const LazyTensor& ratios, const CausalLM& model, const Batch& batch) const {
    if (loss_type_ == "ipo") {  // Azar et al. 2023, of means over tokens
      const LazyTensor means = ratios / row_lengths(model, batch);
      return square(every(means, 0, 2) - every(means, 1, 2) - 1 / (2 * beta_));
    }
    const LazyTensor margin = (every(ratios, 0, 2) - every(ratios, 1, 2)) * beta_;
    if (loss_type_ == "hinge") return relu(1 - margin);
    // With smoothing a share of the pairs counts as labelled the wrong way round.
    const LazyTensor loss = log_sigmoid(margin) * (smoothing_ - 1);
    return smoothing_ == 0 ? loss : loss - log_sigmoid(-margin) * smoothing_;
  }

  double beta_;
  double smoothing_;
  std::string loss_type_;
};

}  // namespace

detail::ObjectiveKind dpo_objective() {
  return {
      .name = "dpo",
      .options = {{.name = "beta",
                   .help = "How strongly the model is held to the reference; of orpo the weight of the odds",
                   .otherwise = 0.1,
                   .low_is_out = true},
                  {.name = "label_smoothing",
                   .help = "Share of pairs that are taken to be labelled the wrong way round",
                   .high = 0.5},
                  {.name = "loss_type",
                   .help = "The loss of a pair's margin",
                   .kind = ObjectiveOption::Kind::word,
                   .words = {"sigmoid", "ipo", "hinge"}}},
      .make = [](const ObjectiveOptions& options) { return std::make_unique<DirectPreference>(options); }};
}

}  // namespace caldera
