#include "ops/loss/regression.h"

#include <fmt/core.h>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/loss/loss_operands.h"
#include "ops/loss/reduction.h"

namespace caldera {
namespace {

/// d^2 / 2 below `delta`, and above it the line that goes on from there. The absolute value is taken only
/// where it is chosen and not 0, so that second derivatives are right at 0.
LazyTensor huber(const LazyTensor& d, double delta) {
  const LazyTensor distance = abs(d);
  return where(less(distance, delta), square(d) * 0.5, (distance - delta / 2) * delta);
}

}  // namespace

LazyTensor mse_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction) {
  const ops::LossOperands x("mse_loss", {input, target});
  return x.reduced(square(x[0] - x[1]), reduction);
}

LazyTensor l1_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction) {
  const ops::LossOperands x("l1_loss", {input, target});
  return x.reduced(abs(x[0] - x[1]), reduction);
}

LazyTensor huber_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction, double delta) {
  const ops::LossOperands x("huber_loss", {input, target});
  if (!(delta > 0)) throw ValueError(fmt::format("huber_loss: delta is {}, want it above 0", delta));
  return x.reduced(huber(x[0] - x[1], delta), reduction);
}

LazyTensor smooth_l1_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction,
                          double beta) {
  const ops::LossOperands x("smooth_l1_loss", {input, target});
  if (!(beta >= 0)) throw ValueError(fmt::format("smooth_l1_loss: beta is {}, want it at least 0", beta));
  const LazyTensor d = x[0] - x[1];
  return x.reduced(beta == 0 ? abs(d) : huber(d, beta) / beta, reduction);
}

}  // namespace caldera
