// Adam (Kingma and Ba 2015), with the numerics of torch.optim.Adam: weight decay is an L2 penalty, added to
// the gradient.
#include <optional>

#include "ops/core/arithmetic.h"
#include "training/optim/adamw.h"
#include "training/optim/kind.h"

namespace caldera {
namespace {

/// AdamW's update (which Adam's is without decay) of the gradient with the penalty.
class Adam final : public Optimizer {
 public:
  Adam(std::vector<Parameter> parameters, const AdamWOptions& options)
      : Optimizer("Adam", std::move(parameters), std::vector<std::string>{"exp_avg", "exp_avg_sq"},
                  options.learning_rate, options.weight_decay),
        options_(options) {
    options_.validate();
  }

 private:
  void prepare(const Numbers& numbers) override {
    penalty_ = numbers.weight_decay;
    has_penalty_ = numbers.weight_decay != 0;
    step_.emplace(AdamWScalars{.learning_rate = numbers.learning_rate,
                               .beta1 = options_.beta1,
                               .beta2 = options_.beta2,
                               .eps = options_.eps,
                               .weight_decay = 0,
                               .step = numbers.step});
  }

  Updated updated(const Step& step) const override {
    const LazyTensor g = has_penalty_ ? step.grad + step.parameter * penalty_ : step.grad;
    AdamWUpdate update = (*step_)(step.parameter, g, step.slots[0], step.slots[1]);
    return {std::move(update.param), {std::move(update.m), std::move(update.v)}};
  }

  AdamWOptions options_;
  std::optional<AdamWStep> step_;
  LazyTensor penalty_;
  bool has_penalty_ = false;
};

}  // namespace

detail::OptimizerKind adam_optimizer() {
  return {"adam",
          {"beta1", "beta2", "eps"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            return std::make_unique<Adam>(std::move(parameters),
                                          detail::adamw_options(o, /*weight_decay=*/0));
          }};
}

}  // namespace caldera
