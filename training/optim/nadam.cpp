// NAdam (Dozat 2016), with the numerics of torch.optim.NAdam.
#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/elementwise/power.h"
#include "training/optim/adamw.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

/// Adam whose momentum looks a step ahead: with mu_t = b1 (1 - 0.96^(t decay) / 2) and M_t the product of
/// mu_1 ... mu_t, p - lr ((1 - mu_t) / (1 - M_t) g + mu_(t+1) / (1 - M_(t+1)) m') / (sqrt(v' / (1 - b2^t)) +
/// eps).
class NAdam final : public Optimizer {
 public:
  NAdam(std::vector<Parameter> parameters, const AdamWOptions& options, double momentum_decay)
      : Optimizer("NAdam", std::move(parameters), std::vector<std::string>{"exp_avg", "exp_avg_sq"},
                  options.learning_rate, options.weight_decay),
        options_(options),
        momentum_decay_(momentum_decay) {
    options_.validate();
    const detail::OptionCheck require{"NAdam"};
    require(momentum_decay >= 0 && std::isfinite(momentum_decay), "momentum_decay", momentum_decay,
            "finite and at least 0");
  }

 private:
  double momentum_at(std::int64_t step) const {
    return options_.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * momentum_decay_));
  }

  void prepare(const Numbers& numbers) override {
    // The product goes on from the last step, or begins again where a run was restored or a step taken back.
    if (numbers.step < counted_) counted_ = 0, product_ = 1;
    while (counted_ < numbers.step) product_ *= momentum_at(++counted_);
    const double now = momentum_at(numbers.step), next = momentum_at(numbers.step + 1);
    of_grad_ = numbers.learning_rate * (1 - now) / (1 - product_);
    of_moment_ = numbers.learning_rate * next / (1 - product_ * next);
    correction_ = 1 - std::pow(options_.beta2, static_cast<double>(numbers.step));
    penalty_ = numbers.weight_decay;
    has_penalty_ = numbers.weight_decay != 0;
  }

  Updated updated(const Step& step) const override {
    const LazyTensor g = has_penalty_ ? step.grad + step.parameter * penalty_ : step.grad;
    const LazyTensor m = step.slots[0] * options_.beta1 + g * (1 - options_.beta1);
    const LazyTensor v = step.slots[1] * options_.beta2 + square(g) * (1 - options_.beta2);
    const LazyTensor root = sqrt(v / correction_) + options_.eps;
    return {step.parameter - g / root * of_grad_ - m / root * of_moment_, {m, v}};
  }

  AdamWOptions options_;
  double momentum_decay_;
  std::int64_t counted_ = 0;
  double product_ = 1;
  LazyTensor of_grad_, of_moment_, correction_, penalty_;
  bool has_penalty_ = false;
};

}  // namespace

detail::OptimizerKind nadam_optimizer() {
  return {"nadam",
          {"beta1", "beta2", "eps", "momentum_decay"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            AdamWOptions options = detail::adamw_options(o, /*weight_decay=*/0);
            options.learning_rate = o.learning_rate.value_or(2e-3);
            return std::make_unique<NAdam>(std::move(parameters), options, o.number("momentum_decay", 4e-3));
          }};
}

}  // namespace caldera
