#include "ops/loss/focal.h"

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/loss/loss_operands.h"
#include "ops/loss/ranking.h"
#include "ops/nn/activations.h"

namespace caldera {

LazyTensor focal_loss(const LazyTensor& input, const LazyTensor& target, const FocalOptions& options) {
  if (!(options.gamma >= 0) || options.alpha > 1)
    throw ValueError("focal_loss: gamma is below 0, or alpha above 1");
  const ops::LossOperands operands("focal_loss", {input, target});
  const LazyTensor &x = operands[0], &t = operands[1];
  // -log p and -log(1 - p) of the logits; 1 - q by the sigmoids of both signs, of which none cancels.
  const LazyTensor entropy = softplus(-x) * t + softplus(x) * (1.0 - t);
  const LazyTensor missed = sigmoid(-x) * t + sigmoid(x) * (1.0 - t);
  LazyTensor loss = entropy;
  if (options.gamma == 2)
    loss = square(missed) * entropy;
  else if (options.gamma != 0)
    loss = pow(missed, options.gamma) * entropy;
  if (options.alpha >= 0) loss = loss * (t * options.alpha + (1.0 - t) * (1 - options.alpha));
  return operands.reduced(loss, options.reduction);
}

LazyTensor hinge_loss(const LazyTensor& input, const LazyTensor& target, double margin, Reduction reduction) {
  const ops::LossOperands operands("hinge_loss", {input}, {target});
  return operands.reduced(relu(margin - operands.beside(target, "target") * operands[0]), reduction);
}

LazyTensor contrastive_loss(const LazyTensor& a, const LazyTensor& b, const LazyTensor& target, double margin,
                            Reduction reduction) {
  const LazyTensor distance = pairwise_distance(a, b, 2, 0);
  const ops::LossOperands operands("contrastive_loss", {distance}, {target});
  const LazyTensor &d = operands[0], t = operands.beside(target, "target");
  return operands.reduced((t * square(d) + (1.0 - t) * square(relu(margin - d))) * 0.5, reduction);
}

}  // namespace caldera
