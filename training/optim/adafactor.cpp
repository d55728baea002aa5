// Adafactor (Shazeer and Stern 2018), with the numerics of torch.optim.Adafactor: the second moment of a
// matrix is a row and a column, and steps are in proportion to the size of the parameter.
#include <cmath>
#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/selection.h"
#include "ops/elementwise/power.h"
#include "ops/reduce/mean.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

struct AdafactorOptions {
  double learning_rate = 1e-2;
  double beta2_decay = -0.8;  ///< the average of the second moment keeps 1 - step^beta2_decay
  double eps = 1e-3;          ///< a parameter counts as at least so large
  double threshold = 1;       ///< the largest root mean square of an update
  double weight_decay = 0;
};

/// With R and C the averages of the rows' and columns' means of g^2 (of a vector, V the average of g^2):
///
///   u = g / sqrt(R C / mean(R)),  a = max(eps, rms(p)) min(lr, 1 / sqrt(t))
///   p (1 - lr wd) - a u / max(1, rms(u) / threshold)
///
/// State: "row_var" (..., n, 1) and "col_var" (..., 1, m), or "variance" of parameters with fewer than two
/// axes.
class Adafactor final : public Optimizer {
 public:
  Adafactor(std::vector<Parameter> parameters, const AdafactorOptions& options)
      : Optimizer(
            "Adafactor", std::move(parameters),
            [](const LazyTensor& parameter) {
              std::vector<Slot> slots = slots_like(parameter, {"variance"});
              if (parameter.rank() < 2) return slots;
              const auto without = [&](std::size_t axis_from_end) {
                std::vector<std::int64_t> extents(parameter.shape().begin(), parameter.shape().end());
                extents[extents.size() - axis_from_end] = 1;
                return Shape(extents);
              };
              const DType dtype = slots.front().dtype;
              return std::vector<Slot>{{"row_var", without(1), dtype}, {"col_var", without(2), dtype}};
            },
            options.learning_rate, options.weight_decay),
        options_(options) {
    const detail::OptionCheck require{"Adafactor"};
    require(options.beta2_decay <= 0 && std::isfinite(options.beta2_decay), "beta2_decay",
            options.beta2_decay, "finite and at most 0");
    require(options.eps >= 0 && std::isfinite(options.eps), "eps", options.eps, "finite and at least 0");
    require(options.threshold > 0 && std::isfinite(options.threshold), "threshold", options.threshold,
            "finite and above 0");
    require(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight_decay",
            options.weight_decay, "finite and at least 0");
  }

 private:
  void prepare(const Numbers& numbers) override {
    const auto t = static_cast<double>(numbers.step);
    const double fresh = std::pow(t, options_.beta2_decay);
    fresh_ = fresh;
    old_ = 1 - fresh;
    rate_ = std::min(numbers.learning_rate, 1 / std::sqrt(t));
    kept_ = 1 - numbers.learning_rate * numbers.weight_decay;
    eps_ = options_.eps;
    threshold_ = options_.threshold;
  }

  LazyTensor averaged(const LazyTensor& old, const LazyTensor& fresh) const {
    return old * old_ + fresh * fresh_;
  }

  Updated updated(const Step& step) const override {
    const LazyTensor squares = square(step.grad);
    const double tiny = step.parameter.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                             : std::numeric_limits<float>::epsilon();
    std::vector<LazyTensor> slots;
    LazyTensor variance;
    if (step.parameter.rank() < 2) {
      slots = {averaged(step.slots[0], squares)};
      variance = slots[0];
    } else {
      slots = {averaged(step.slots[0], mean(squares, {-1}, /*keepdims=*/true)),
               averaged(step.slots[1], mean(squares, {-2}, /*keepdims=*/true))};
      variance = slots[0] * slots[1] / maximum(mean(slots[0], {-2}, /*keepdims=*/true), tiny);
    }
    const LazyTensor update = rsqrt(maximum(variance, tiny * tiny)) * step.grad;
    const LazyTensor size = maximum(sqrt(mean(square(step.parameter))), eps_);
    const LazyTensor overshoot = maximum(sqrt(mean(square(update))) / threshold_, 1.0);
    return {step.parameter * kept_ - update * (size * rate_ / overshoot), std::move(slots)};
  }

  AdafactorOptions options_;
  LazyTensor fresh_, old_, rate_, kept_, eps_, threshold_;  // of the present step
};

}  // namespace

detail::OptimizerKind adafactor_optimizer() {
  return {"adafactor",
          {"beta2_decay", "eps", "threshold"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            AdafactorOptions options;
            options.learning_rate = o.learning_rate.value_or(options.learning_rate);
            options.beta2_decay = o.number("beta2_decay", options.beta2_decay);
            options.eps = o.number("eps", options.eps);
            options.threshold = o.number("threshold", options.threshold);
            options.weight_decay = o.weight_decay.value_or(options.weight_decay);
            return std::make_unique<Adafactor>(std::move(parameters), options);
          }};
}

}  // namespace caldera
