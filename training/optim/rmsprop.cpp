// RMSprop (Hinton 2012; centered: Graves 2013), with the numerics of torch.optim.RMSprop.
#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/elementwise/power.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

struct RMSpropOptions {
  double learning_rate = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};

std::vector<std::string> rmsprop_slots(const RMSpropOptions& options) {
  std::vector<std::string> slots{"square_avg"};
  if (options.momentum != 0) slots.emplace_back("momentum_buffer");
  if (options.centered) slots.emplace_back("grad_avg");
  return slots;
}

/// s' = a s + (1 - a) g^2; p - lr g / (sqrt(s') + eps), or by a momentum of that. Centered: s' less the
/// square of the average of g.
class RMSprop final : public Optimizer {
 public:
  RMSprop(std::vector<Parameter> parameters, const RMSpropOptions& options)
      : Optimizer("RMSprop", std::move(parameters), rmsprop_slots(options), options.learning_rate,
                  options.weight_decay),
        options_(options) {
    const detail::OptionCheck require{"RMSprop"};
    require(options.alpha >= 0 && std::isfinite(options.alpha), "alpha", options.alpha,
            "finite and at least 0");
    require(options.eps >= 0 && std::isfinite(options.eps), "eps", options.eps, "finite and at least 0");
    require(options.momentum >= 0 && std::isfinite(options.momentum), "momentum", options.momentum,
            "finite and at least 0");
  }

 private:
  void prepare(const Numbers& numbers) override {
    rate_ = numbers.learning_rate;
    penalty_ = numbers.weight_decay;
    has_penalty_ = numbers.weight_decay != 0;
  }

  Updated updated(const Step& step) const override {
    const LazyTensor g = has_penalty_ ? step.grad + step.parameter * penalty_ : step.grad;
    Updated next{{}, {step.slots[0] * options_.alpha + square(g) * (1 - options_.alpha)}};
    LazyTensor mean = next.slots[0];
    LazyTensor average;
    if (options_.centered) {
      average = step.slots.back() * options_.alpha + g * (1 - options_.alpha);
      mean = mean - square(average);
    }
    LazyTensor direction = g / (sqrt(mean) + options_.eps);
    if (options_.momentum != 0) {
      direction = step.slots[1] * options_.momentum + direction;
      next.slots.push_back(direction);
    }
    if (options_.centered) next.slots.push_back(average);
    next.parameter = step.parameter - direction * rate_;
    return next;
  }

  RMSpropOptions options_;
  LazyTensor rate_, penalty_;
  bool has_penalty_ = false;
};

}  // namespace

detail::OptimizerKind rmsprop_optimizer() {
  return {"rmsprop",
          {"alpha", "eps", "momentum", "centered"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            RMSpropOptions options;
            options.learning_rate = o.learning_rate.value_or(options.learning_rate);
            options.alpha = o.number("alpha", options.alpha);
            options.eps = o.number("eps", options.eps);
            options.weight_decay = o.weight_decay.value_or(options.weight_decay);
            options.momentum = o.number("momentum", options.momentum);
            options.centered = o.number("centered", 0) != 0;
            return std::make_unique<RMSprop>(std::move(parameters), options);
          }};
}

}  // namespace caldera
