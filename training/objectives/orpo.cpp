// ORPO: odds ratio preference optimisation (Hong et al. 2024). Learns the chosen answers, and pushes the odds
// of the rejected ones down beside theirs; there is no reference model.
#include <memory>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/sum.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "ops/nn/activations.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {
namespace {

/// log(p / (1 - p)) of a log-probability below 0.
LazyTensor log_odds(const LazyTensor& log_p) { return log_p - log(-expm1(log_p)); }

class OddsRatio final : public Objective {
 public:
  explicit OddsRatio(double beta) : beta_(beta) {}

  std::string_view name() const override { return "orpo"; }
  std::int64_t sequences_per_example() const override { return 2; }
  std::int64_t count(const Batch& batch) const override { return batch.batch_size / 2; }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    const LazyTensor means =
        row_log_probabilities(models.policy(), batch) / row_lengths(models.policy(), batch);
    // An answer that is certain has infinite odds.
    const LazyTensor odds = log_odds(clip(means, std::nullopt, kMostLogP));
    const LazyTensor ratio = every(odds, 0, 2) - every(odds, 1, 2);
    const LazyTensor chosen = every(means, 0, 2), rejected = every(means, 1, 2);
    const LazyTensor preference = log_sigmoid(ratio);
    return {.loss = sum(-chosen - preference * beta_),
            .metrics = {{"nll_loss", sum(-chosen)},
                        {"log_odds_ratio", sum(preference)},
                        {"rewards/chosen", sum(chosen) * beta_},
                        {"rewards/rejected", sum(rejected) * beta_},
                        {"rewards/margins", sum(chosen - rejected) * beta_},
                        {"rewards/accuracies", sum(astype(greater(chosen, rejected), DType::f32))}}};
  }

 private:
  static constexpr double kMostLogP = -1e-6;
  double beta_;
};

}  // namespace

detail::ObjectiveKind orpo_objective() {
  return {
      .name = "orpo",
      .options = {{.name = "beta",
                   .help = "How strongly the model is held to the reference; of orpo the weight of the odds",
                   .otherwise = 0.1,
                   .low_is_out = true}},
      .make = [](const ObjectiveOptions& options) {
        return std::make_unique<OddsRatio>(options.more.at("beta"));
      }};
}

}  // namespace caldera
