// Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon), with the numerics of
// torch.optim.Muon, in f32: the momentum of a matrix, made nearly orthogonal, is its update.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ops/core/arithmetic.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/linalg/matmul.h"
#include "training/optim/adamw.h"
#include "training/optim/kind.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

struct MuonOptions {
  double learning_rate = 1e-3;
  double momentum = 0.95;
  double weight_decay = 0.1;
  bool nesterov = true;
  double steps = 5;  ///< of the Newton-Schulz iteration
};

// Its coefficients, chosen for speed: singular values end in about [0.7, 1.2].
constexpr std::array kNewtonSchulz{3.4445, -4.7750, 2.0315};
constexpr double kSmallestNorm = 1e-7;

/// x with its singular values driven towards 1, of a matrix.
LazyTensor orthogonalised(const LazyTensor& x, int steps) {
  const bool tall = x.shape()[0] > x.shape()[1];
  LazyTensor y = tall ? transpose(x) : x;
  y = y / maximum(sqrt(sum(square(y))), kSmallestNorm);
  for (int i = 0; i < steps; ++i) {
    const LazyTensor gram = matmul(y, transpose(y));
    y = y * kNewtonSchulz[0] + matmul(gram * kNewtonSchulz[1] + matmul(gram, gram) * kNewtonSchulz[2], y);
  }
  return tall ? transpose(y) : y;
}

/// With b' = momentum b + (1 - momentum) g, and u the orthogonalised (1 - momentum) g + momentum b' (without
/// Nesterov's momentum, b'): p (1 - lr wd) - lr sqrt(max(1, rows / columns)) u. State: "momentum_buffer".
/// Parameters that are no matrices get AdamW's update at the same rate, and have its state.
class Muon final : public Optimizer {
 public:
  Muon(std::vector<Parameter> parameters, const MuonOptions& options)
      : Optimizer(
            "Muon", std::move(parameters),
            [](const LazyTensor& parameter) {
              return parameter.rank() == 2 ? slots_like(parameter, {"momentum_buffer"})
                                           : slots_like(parameter, {"exp_avg", "exp_avg_sq"});
            },
            options.learning_rate, options.weight_decay),
        options_(options) {
    const detail::OptionCheck require{"Muon"};
    require(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, "in [0, 1)");
    require(options.steps >= 1 && options.steps <= 100 && options.steps == std::floor(options.steps), "steps",
            options.steps, "a whole number from 1 to 100");
    require(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight_decay",
            options.weight_decay, "finite and at least 0");
  }

 private:
  void prepare(const Numbers& numbers) override {
    rate_ = numbers.learning_rate;
    kept_ = 1 - numbers.learning_rate * numbers.weight_decay;
    momentum_ = options_.momentum;
    fresh_ = 1 - options_.momentum;
    adamw_.emplace(AdamWScalars{
        .learning_rate = numbers.learning_rate, .weight_decay = numbers.weight_decay, .step = numbers.step});
  }

  Updated updated(const Step& step) const override {
    if (step.slots.size() == 2) {
      AdamWUpdate update = (*adamw_)(step.parameter, step.grad, step.slots[0], step.slots[1]);
      return {std::move(update.param), {std::move(update.m), std::move(update.v)}};
    }
    const LazyTensor buffer = step.slots[0] * momentum_ + step.grad * fresh_;
    const LazyTensor direction = options_.nesterov ? step.grad * fresh_ + buffer * momentum_ : buffer;
    const auto rows = static_cast<double>(step.parameter.shape()[0]);
    const auto columns = static_cast<double>(step.parameter.shape()[1]);
    const LazyTensor update = orthogonalised(direction, static_cast<int>(options_.steps));
    const double stretch = std::sqrt(std::max(1.0, rows / columns));
    return {step.parameter * kept_ - update * rate_ * stretch, {buffer}};
  }

  MuonOptions options_;
  LazyTensor rate_, kept_, momentum_, fresh_;  // of the present step
  std::optional<AdamWStep> adamw_;
};

}  // namespace

detail::OptimizerKind muon_optimizer() {
  return {"muon",
          {"momentum", "nesterov", "steps"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            MuonOptions options;
            options.learning_rate = o.learning_rate.value_or(options.learning_rate);
            options.momentum = o.number("momentum", options.momentum);
            options.weight_decay = o.weight_decay.value_or(options.weight_decay);
            options.nesterov = o.number("nesterov", 1) != 0;
            options.steps = o.number("steps", options.steps);
            return std::make_unique<Muon>(std::move(parameters), options);
          }};
}

}  // namespace caldera
