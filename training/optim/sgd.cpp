#include "training/optim/sgd.h"

#include <cmath>

#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {

void SGDOptions::validate() const {
  const detail::OptionCheck require{"SGD"};
  const char* domain = "finite and at least 0";
  require(learning_rate >= 0 && std::isfinite(learning_rate), "learning_rate", learning_rate, domain);
  require(momentum >= 0 && std::isfinite(momentum), "momentum", momentum, domain);
  require(std::isfinite(dampening), "dampening", dampening, "finite");
  require(weight_decay >= 0 && std::isfinite(weight_decay), "weight_decay", weight_decay, domain);
  if (nesterov && (momentum == 0 || dampening != 0))
    throw ValueError("SGD: nesterov needs a momentum and no dampening");
}

SGD::SGD(std::vector<Parameter> parameters, const SGDOptions& options)
    : Optimizer(
          "SGD", std::move(parameters),
          options.momentum == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum_buffer"},
          options.learning_rate, options.weight_decay),
      options_(options) {
  options_.validate();
}

void SGD::prepare(const Numbers& numbers) {
  rate_ = numbers.learning_rate;
  decay_ = numbers.weight_decay;
  decays_ = numbers.weight_decay != 0;
  momentum_ = options_.momentum;
  // The buffer begins as zeros. A factor and not a case, so that the first step has the plan of all later
  // ones.
  fresh_ = numbers.step == 1 ? 1 : 1 - options_.dampening;
}

Optimizer::Updated SGD::updated(const Step& step) const {
  const LazyTensor g = decays_ ? step.grad + step.parameter * decay_ : step.grad;
  if (options_.momentum == 0) return {step.parameter - g * rate_, {}};
  LazyTensor buffer = step.slots[0] * momentum_;
  buffer = buffer + (options_.dampening == 0 ? g : g * fresh_);
  const LazyTensor direction = options_.nesterov ? g + buffer * momentum_ : buffer;
  return {step.parameter - direction * rate_, {buffer}};
}

detail::OptimizerKind sgd_optimizer() {
  return {"sgd",
          {"momentum", "dampening", "nesterov"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            SGDOptions options;
            options.learning_rate = o.learning_rate.value_or(options.learning_rate);
            options.momentum = o.number("momentum", options.momentum);
            options.dampening = o.number("dampening", options.dampening);
            options.weight_decay = o.weight_decay.value_or(options.weight_decay);
            options.nesterov = o.number("nesterov", 0) != 0;
            return std::make_unique<SGD>(std::move(parameters), options);
          }};
}

}  // namespace caldera
