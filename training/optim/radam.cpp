// RAdam (Liu et al. 2020), with the numerics of torch.optim.RAdam.
#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/elementwise/power.h"
#include "training/optim/adamw.h"
#include "training/optim/kind.h"

namespace caldera {
namespace {

/// Adam that goes by the momentum alone until the variance of its step is known well enough, and is rectified
/// after that: r_t of the paper's equation 9, where rho_t > 5.
class RAdam final : public Optimizer {
 public:
  RAdam(std::vector<Parameter> parameters, const AdamWOptions& options)
      : Optimizer("RAdam", std::move(parameters), std::vector<std::string>{"exp_avg", "exp_avg_sq"},
                  options.learning_rate, options.weight_decay),
        options_(options) {
    options_.validate();
  }

 private:
  void prepare(const Numbers& numbers) override {
    const auto t = static_cast<double>(numbers.step);
    const double decayed = std::pow(options_.beta2, t), correction = 1 - decayed;
    const double last = 2 / (1 - options_.beta2) - 1, rho = last - 2 * t * decayed / correction;
    const double rate = numbers.learning_rate / (1 - std::pow(options_.beta1, t));
    // Factors and no case, so that all steps have one plan.
    const bool rectified = rho > 5;
    const double rectification =
        rectified ? std::sqrt((rho - 4) * (rho - 2) * last / ((last - 4) * (last - 2) * rho)) : 0;
    adaptive_ = rate * rectification * std::sqrt(correction);
    plain_ = rectified ? 0.0 : rate;
    penalty_ = numbers.weight_decay;
    has_penalty_ = numbers.weight_decay != 0;
  }

  Updated updated(const Step& step) const override {
    const LazyTensor g = has_penalty_ ? step.grad + step.parameter * penalty_ : step.grad;
    const LazyTensor m = step.slots[0] * options_.beta1 + g * (1 - options_.beta1);
    const LazyTensor v = step.slots[1] * options_.beta2 + square(g) * (1 - options_.beta2);
    return {step.parameter - m * (adaptive_ / (sqrt(v) + options_.eps) + plain_), {m, v}};
  }

  AdamWOptions options_;
  LazyTensor adaptive_, plain_, penalty_;
  bool has_penalty_ = false;
};

}  // namespace

detail::OptimizerKind radam_optimizer() {
  return {"radam",
          {"beta1", "beta2", "eps"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            AdamWOptions options = detail::adamw_options(o, /*weight_decay=*/0);
            options.learning_rate = o.learning_rate.value_or(1e-3);
            return std::make_unique<RAdam>(std::move(parameters), options);
          }};
}

}  // namespace caldera
