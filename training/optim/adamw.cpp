#include "training/optim/adamw.h"

#include <cmath>

#include "ops/core/selection.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {

void AdamWOptions::validate() const {
  const detail::OptionCheck require{"AdamW"};
  const char* domain = "finite and at least 0";
  require(learning_rate >= 0 && std::isfinite(learning_rate), "learning_rate", learning_rate, domain);
  require(beta1 >= 0 && beta1 < 1, "beta1", beta1, "in [0, 1)");
  require(beta2 >= 0 && beta2 < 1, "beta2", beta2, "in [0, 1)");
  require(eps >= 0 && std::isfinite(eps), "eps", eps, domain);
  require(weight_decay >= 0 && std::isfinite(weight_decay), "weight_decay", weight_decay, domain);
}

AdamW::AdamW(std::vector<Parameter> parameters, const AdamWOptions& options)
    : Optimizer("AdamW", std::move(parameters), std::vector<std::string>{"exp_avg", "exp_avg_sq"},
                options.learning_rate, options.weight_decay),
      options_(options) {
  options_.validate();
}

void AdamW::prepare(const Numbers& numbers) {
  step_.emplace(AdamWScalars{.learning_rate = numbers.learning_rate,
                             .beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .eps = options_.eps,
                             .weight_decay = numbers.weight_decay,
                             .step = numbers.step});
}

Optimizer::Updated AdamW::updated(const Step& step) const {
  AdamWUpdate update = (*step_)(step.parameter, step.grad, step.slots[0], step.slots[1]);
  return {std::move(update.param), {std::move(update.m), std::move(update.v)}};
}

AdamWOptions detail::adamw_options(const OptimizerOptions& named, double weight_decay) {
  AdamWOptions options;
  options.learning_rate = named.learning_rate.value_or(options.learning_rate);
  options.beta1 = named.number("beta1", options.beta1);
  options.beta2 = named.number("beta2", options.beta2);
  options.eps = named.number("eps", options.eps);
  options.weight_decay = named.weight_decay.value_or(weight_decay);
  return options;
}

detail::OptimizerKind adamw_optimizer() {
  return {"adamw",
          {"beta1", "beta2", "eps"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            return std::make_unique<AdamW>(std::move(parameters), detail::adamw_options(o));
          }};
}

}  // namespace caldera
