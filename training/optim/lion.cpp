// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", Program 1).
#include <cmath>

#include "ops/core/arithmetic.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

struct LionOptions {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
};

/// p (1 - lr wd) - lr sign(b1 m + (1 - b1) g), then m' = b2 m + (1 - b2) g. State: "exp_avg". One moment,
/// half of Adam's memory; rates three to ten times smaller than AdamW's suit it.
class Lion final : public Optimizer {
 public:
  Lion(std::vector<Parameter> parameters, const LionOptions& options)
      : Optimizer("Lion", std::move(parameters), std::vector<std::string>{"exp_avg"}, options.learning_rate,
                  options.weight_decay),
        options_(options) {
    const detail::OptionCheck require{"Lion"};
    require(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "in [0, 1)");
    require(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "in [0, 1)");
    require(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight_decay",
            options.weight_decay, "finite and at least 0");
  }

 private:
  void prepare(const Numbers& numbers) override {
    rate_ = numbers.learning_rate;
    kept_ = 1 - numbers.learning_rate * numbers.weight_decay;
    beta1_ = options_.beta1;
    rest1_ = 1 - options_.beta1;
    beta2_ = options_.beta2;
    rest2_ = 1 - options_.beta2;
  }

  Updated updated(const Step& step) const override {
    const LazyTensor& m = step.slots[0];
    const LazyTensor direction = sign(m * beta1_ + step.grad * rest1_);
    return {step.parameter * kept_ - direction * rate_, {m * beta2_ + step.grad * rest2_}};
  }

  LionOptions options_;
  LazyTensor rate_, kept_, beta1_, rest1_, beta2_, rest2_;  // of the present step
};

}  // namespace

detail::OptimizerKind lion_optimizer() {
  return {"lion",
          {"beta1", "beta2"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            LionOptions options;
            options.learning_rate = o.learning_rate.value_or(options.learning_rate);
            options.beta1 = o.number("beta1", options.beta1);
            options.beta2 = o.number("beta2", options.beta2);
            options.weight_decay = o.weight_decay.value_or(options.weight_decay);
            return std::make_unique<Lion>(std::move(parameters), options);
          }};
}

}  // namespace caldera
