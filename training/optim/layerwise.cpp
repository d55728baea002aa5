// Optimisers that scale a parameter's step by its norms, for large batches: LARS (You, Gitman and Ginsburg
// 2017, "Large Batch Training of Convolutional Networks", algorithm 1) and Lamb (You et al. 2020, "Large
// Batch Optimization for Deep Learning", algorithm 2).
#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/power.h"
#include "training/optim/adamw.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

LazyTensor euclidean_norm(const LazyTensor& x) { return sqrt(sum(square(x))); }

/// Returns above / below, and 1 where one of the norms is 0: a parameter of zeros is to move, too.
LazyTensor layer_ratio(const LazyTensor& parameter_norm, const LazyTensor& step_norm, const LazyTensor& above,
                       const LazyTensor& below) {
  return where(logical_and(parameter_norm > 0.0, step_norm > 0.0), above / below, LazyTensor(1.0));
}

struct LarsOptions {
  double learning_rate = 1e-1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 1e-3;  ///< the paper's eta
  double eps = 1e-8;
};

/// l = trust |p| / (|g| + decay |p| + eps), of the whole parameter; b' = momentum b + lr l (g + decay p);
/// p - b'. State: "momentum_buffer".
class Lars final : public Optimizer {
 public:
  Lars(std::vector<Parameter> parameters, const LarsOptions& options)
      : Optimizer("LARS", std::move(parameters), std::vector<std::string>{"momentum_buffer"},
                  options.learning_rate, options.weight_decay),
        options_(options) {
    const detail::OptionCheck require{"LARS"};
    require(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, "in [0, 1)");
    require(options.trust > 0 && std::isfinite(options.trust), "trust", options.trust, "finite and above 0");
    require(options.eps >= 0 && std::isfinite(options.eps), "eps", options.eps, "finite and at least 0");
  }

 private:
  void prepare(const Numbers& numbers) override {
    rate_ = numbers.learning_rate;
    decay_ = numbers.weight_decay;
  }

  Updated updated(const Step& step) const override {
    const LazyTensor weight = euclidean_norm(step.parameter), slope = euclidean_norm(step.grad);
    const LazyTensor ratio =
        layer_ratio(weight, slope, weight * options_.trust, slope + weight * decay_ + options_.eps);
    const LazyTensor moved = (step.grad + step.parameter * decay_) * (ratio * rate_);
    const LazyTensor buffer = step.slots[0] * options_.momentum + moved;
    return {step.parameter - buffer, {buffer}};
  }

  LarsOptions options_;
  LazyTensor rate_, decay_;
};

/// u = m' / (1 - b1^t) / (sqrt(v' / (1 - b2^t)) + eps) + decay p; p - lr |p| / |u| u, of the whole parameter.
class Lamb final : public Optimizer {
 public:
  Lamb(std::vector<Parameter> parameters, const AdamWOptions& options)
      : Optimizer("Lamb", std::move(parameters), std::vector<std::string>{"exp_avg", "exp_avg_sq"},
                  options.learning_rate, options.weight_decay),
        options_(options) {
    options_.validate();
  }

 private:
  void prepare(const Numbers& numbers) override {
    const auto t = static_cast<double>(numbers.step);
    rate_ = numbers.learning_rate;
    decay_ = numbers.weight_decay;
    first_ = 1 - std::pow(options_.beta1, t);
    second_ = 1 - std::pow(options_.beta2, t);
  }

  Updated updated(const Step& step) const override {
    const LazyTensor m = step.slots[0] * options_.beta1 + step.grad * (1 - options_.beta1);
    const LazyTensor v = step.slots[1] * options_.beta2 + square(step.grad) * (1 - options_.beta2);
    const LazyTensor u = m / first_ / (sqrt(v / second_) + options_.eps) + step.parameter * decay_;
    const LazyTensor weight = euclidean_norm(step.parameter), length = euclidean_norm(u);
    return {step.parameter - u * (layer_ratio(weight, length, weight, length) * rate_), {m, v}};
  }

  AdamWOptions options_;
  LazyTensor rate_, decay_, first_, second_;
};

}  // namespace

detail::OptimizerKind lars_optimizer() {
  return {"lars",
          {"momentum", "trust", "eps"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            LarsOptions options;
            options.learning_rate = o.learning_rate.value_or(options.learning_rate);
            options.momentum = o.number("momentum", options.momentum);
            options.weight_decay = o.weight_decay.value_or(options.weight_decay);
            options.trust = o.number("trust", options.trust);
            options.eps = o.number("eps", options.eps);
            return std::make_unique<Lars>(std::move(parameters), options);
          }};
}

detail::OptimizerKind lamb_optimizer() {
  return {"lamb",
          {"beta1", "beta2", "eps"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            AdamWOptions options = detail::adamw_options(o, /*weight_decay=*/0.01);
            options.learning_rate = o.learning_rate.value_or(1e-3);
            if (!o.more.contains("eps")) options.eps = 1e-6;
            return std::make_unique<Lamb>(std::move(parameters), options);
          }};
}

}  // namespace caldera
