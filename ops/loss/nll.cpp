#include "ops/loss/nll.h"

#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/loss/loss_operands.h"
#include "ops/loss/reduction.h"
#include "ops/nn/activations.h"

namespace caldera {
namespace {

constexpr double kLeastLogarithm = -100;  // of binary_cross_entropy

/// max(log(x), -100). At 0 the logarithm of something else is taken: its slope would be infinite, times 0.
LazyTensor limited_log(const LazyTensor& x) {
  const LazyTensor zero = equal(x, 0.0);
  const LazyTensor logarithm = log(where(zero, ones_like(x), x));
  return where(logical_or(zero, less(logarithm, kLeastLogarithm)), full_like(x, kLeastLogarithm), logarithm);
}

/// x * log(x), and 0 at 0.
LazyTensor times_log(const LazyTensor& x) {
  const LazyTensor zero = equal(x, 0.0);
  return where(zero, zeros_like(x), x * log(where(zero, ones_like(x), x)));
}

/// `var` as it broadcasts to the input: of its shape, or with 1 or nothing in place of the last axis. Other
/// shapes that would broadcast are refused, as in PyTorch: (3) beside (2, 3) means something else than beside
/// (3, 3).
LazyTensor variance_for(const LazyTensor& input, const LazyTensor& var) {
  if (var.rank() == 0 || var.shape() == input.shape()) return var;
  Shape rows;
  for (int i = 0; i + 1 < input.rank(); ++i) rows.push_back(input.shape(i));
  if (var.shape() == rows) return expand_dims(var, -1);
  rows.push_back(1);
  if (var.shape() == rows) return var;
  throw ShapeError(
      fmt::format("gaussian_nll_loss: var {} must have the shape of the input {}, with 1 or nothing in "
                  "place of the last axis if it is shared along it",
                  var.shape().to_string(), input.shape().to_string()));
}

void check_same_shape(const char* op, const LazyTensor& input, const LazyTensor& target) {
  if (input.shape() != target.shape())
    throw ShapeError(fmt::format("{}: input {} and target {} must have the same shape", op,
                                 input.shape().to_string(), target.shape().to_string()));
}

}  // namespace

LazyTensor binary_cross_entropy(const LazyTensor& input, const LazyTensor& target, const LazyTensor& weight,
                                Reduction reduction) {
  check_same_shape("binary_cross_entropy", input, target);
  const ops::LossOperands x("binary_cross_entropy", {input, target}, {weight});
  LazyTensor losses = (x[1] - 1) * limited_log(1 - x[0]) - x[1] * limited_log(x[0]);
  if (weight.defined()) losses = losses * x.beside(weight, "weight");
  return x.reduced(losses, reduction);
}

LazyTensor binary_cross_entropy_with_logits(const LazyTensor& input, const LazyTensor& target,
                                            const LazyTensor& weight, Reduction reduction,
                                            const LazyTensor& pos_weight) {
  check_same_shape("binary_cross_entropy_with_logits", input, target);
  const ops::LossOperands x("binary_cross_entropy_with_logits", {input, target}, {weight, pos_weight});
  // -log(1 - sigmoid(x)) = x - log(sigmoid(x)).
  LazyTensor logarithm = log_sigmoid(x[0]);
  if (pos_weight.defined()) logarithm = logarithm * (x[1] * (x.beside(pos_weight, "pos_weight") - 1) + 1);
  LazyTensor losses = (1 - x[1]) * x[0] - logarithm;
  if (weight.defined()) losses = losses * x.beside(weight, "weight");
  return x.reduced(losses, reduction);
}

LazyTensor kl_div(const LazyTensor& input, const LazyTensor& target, Reduction reduction, bool log_target) {
  const ops::LossOperands x("kl_div", {input, target});
  return x.reduced(log_target ? exp(x[1]) * (x[1] - x[0]) : times_log(x[1]) - x[1] * x[0], reduction);
}

LazyTensor gaussian_nll_loss(const LazyTensor& input, const LazyTensor& target, const LazyTensor& var,
                             bool full, double eps, Reduction reduction) {
  if (!(eps > 0)) throw ValueError(fmt::format("gaussian_nll_loss: eps is {}, want it above 0", eps));
  const ops::LossOperands x("gaussian_nll_loss", {input, target, variance_for(input, var)});
  const LazyTensor below = where(less(x[2], eps), eps - x[2], zeros_like(x[2]));
  const LazyTensor variance = x[2] + stop_gradient(below);
  LazyTensor losses = (log(variance) + square(x[0] - x[1]) / variance) * 0.5;
  if (full) losses = losses + std::log(2 * std::numbers::pi) / 2;
  return x.reduced(losses, reduction);
}

LazyTensor poisson_nll_loss(const LazyTensor& input, const LazyTensor& target, bool log_input, bool full,
                            double eps, Reduction reduction) {
  const ops::LossOperands x("poisson_nll_loss", {input, target});
  LazyTensor losses = log_input ? exp(x[0]) - x[1] * x[0] : x[0] - x[1] * log(x[0] + eps);
  if (full) {
    const LazyTensor above = greater(x[1], 1.0);
    const LazyTensor t = where(above, x[1], ones_like(x[1]));
    const LazyTensor stirling = t * log(t) - t + log(t * (2 * std::numbers::pi)) * 0.5;
    losses = losses + where(above, stirling, zeros_like(stirling));
  }
  return x.reduced(losses, reduction);
}

}  // namespace caldera
