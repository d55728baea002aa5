// Adagrad (Duchi, Hazan and Singer 2011), with the numerics of torch.optim.Adagrad.
#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/elementwise/power.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

struct AdagradOptions {
  double learning_rate = 1e-2;
  double rate_decay = 0;
  double weight_decay = 0;
  double eps = 1e-10;
};

/// s' = s + g^2; p - lr / (1 + (t - 1) rate_decay) g / (sqrt(s') + eps). State: "sum".
class Adagrad final : public Optimizer {
 public:
  Adagrad(std::vector<Parameter> parameters, const AdagradOptions& options)
      : Optimizer("Adagrad", std::move(parameters), std::vector<std::string>{"sum"}, options.learning_rate,
                  options.weight_decay),
        options_(options) {
    const detail::OptionCheck require{"Adagrad"};
    require(options.rate_decay >= 0 && std::isfinite(options.rate_decay), "rate_decay", options.rate_decay,
            "finite and at least 0");
    require(options.eps >= 0 && std::isfinite(options.eps), "eps", options.eps, "finite and at least 0");
  }

 private:
  void prepare(const Numbers& numbers) override {
    rate_ = numbers.learning_rate / (1 + static_cast<double>(numbers.step - 1) * options_.rate_decay);
    penalty_ = numbers.weight_decay;
    has_penalty_ = numbers.weight_decay != 0;
  }

  Updated updated(const Step& step) const override {
    const LazyTensor g = has_penalty_ ? step.grad + step.parameter * penalty_ : step.grad;
    const LazyTensor sum = step.slots[0] + square(g);
    return {step.parameter - g / (sqrt(sum) + options_.eps) * rate_, {sum}};
  }

  AdagradOptions options_;
  LazyTensor rate_, penalty_;
  bool has_penalty_ = false;
};

}  // namespace

detail::OptimizerKind adagrad_optimizer() {
  return {"adagrad",
          {"rate_decay", "eps"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            AdagradOptions options;
            options.learning_rate = o.learning_rate.value_or(options.learning_rate);
            options.rate_decay = o.number("rate_decay", options.rate_decay);
            options.weight_decay = o.weight_decay.value_or(options.weight_decay);
            options.eps = o.number("eps", options.eps);
            return std::make_unique<Adagrad>(std::move(parameters), options);
          }};
}

}  // namespace caldera
