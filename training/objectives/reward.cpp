// Reward model: a head that scores texts, by pairs of which one was preferred (Bradley and Terry 1952; Ouyang
// et al. 2022).
#include <memory>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/nn/activations.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {
namespace {

class RewardModel final : public Objective {
 public:
  explicit RewardModel(double center) : center_(center) {}

  std::string_view name() const override { return "reward"; }
  std::int64_t sequences_per_example() const override { return 2; }
  std::int64_t count(const Batch& batch) const override { return batch.batch_size / 2; }
  void set_up(CausalLM& model, std::int64_t /*classes*/, std::uint64_t seed) const override {
    if (model.score_classes() != 1) model.add_score_head(1, seed);
  }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    const LazyTensor scores = squeeze(row_scores(models.policy(), batch), -1);
    const LazyTensor chosen = every(scores, 0, 2), rejected = every(scores, 1, 2), margin = chosen - rejected;
    LazyTensor losses = -log_sigmoid(margin);
    if (center_ > 0) losses = losses + square(chosen + rejected) * center_;
    return {.loss = sum(losses),
            .metrics = {{"accuracy", sum(astype(greater(chosen, rejected), DType::f32))},
                        {"margin", sum(margin)},
                        {"mean_reward", sum(scores), batch.batch_size}}};
  }

 private:
  double center_;
};

}  // namespace

detail::ObjectiveKind reward_objective() {
  return {.name = "reward",
          .options = {{.name = "center_weight",
                       .help = "Weight of the squared sum of a pair's scores, which keeps their mean at 0"}},
          .make = [](const ObjectiveOptions& options) {
            return std::make_unique<RewardModel>(options.more.at("center_weight"));
          }};
}

}  // namespace caldera
