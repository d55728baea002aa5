// Losses that are negative log-likelihoods or divergences, with PyTorch's names and defaults. Part of
// ops/ops.h; cross-entropy of classes is in ops/loss/cross_entropy.h.
//
// Operands must be floating (DTypeError) and broadcast where nothing else is said (ShapeError); of 16-bit
// types the loss is computed in float32 and rounded once. Values are not looked at: where PyTorch refuses a
// probability outside of [0, 1], the loss is NaN here.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "ops/loss/reduction.h"

namespace caldera {

/// -(target * log(input) + (1 - target) * log(1 - input)) for probabilities, times `weight` (which
/// broadcasts). Each logarithm is at least -100, as in PyTorch, and has no slope where that limits it
/// (PyTorch's is finite, but arbitrary). Input and target have one shape.
LazyTensor binary_cross_entropy(const LazyTensor& input, const LazyTensor& target,
                                const LazyTensor& weight = {}, Reduction reduction = Reduction::mean);
/// Computes the binary cross-entropy of sigmoid(input), without overflow or cancellation. `pos_weight` (which
/// broadcasts) multiplies the first term.
LazyTensor binary_cross_entropy_with_logits(const LazyTensor& input, const LazyTensor& target,
                                            const LazyTensor& weight = {},
                                            Reduction reduction = Reduction::mean,
                                            const LazyTensor& pos_weight = {});
/// target * (log(target) - input) for an input of log-probabilities; 0 where the target is 0. With
/// `log_target`, the target is a logarithm, too. What the literature calls the divergence is
/// Reduction::batchmean.
LazyTensor kl_div(const LazyTensor& input, const LazyTensor& target, Reduction reduction = Reduction::mean,
                  bool log_target = false);
/// (log(var) + (input - target)^2 / var) / 2, with `full` also log(2 pi) / 2 (Nix and Weigend 1994). `var`
/// has the shape of the input, or 1 or nothing in place of its last axis, or is a number. Where it is below
/// `eps`, it counts as eps, but keeps its gradient, as in PyTorch. ValueError unless eps > 0.
LazyTensor gaussian_nll_loss(const LazyTensor& input, const LazyTensor& target, const LazyTensor& var,
                             bool full = false, double eps = 1e-6, Reduction reduction = Reduction::mean);
/// exp(input) - target * input, or without `log_input` input - target * log(input + eps); with `full` also
/// Stirling's approximation of log(target!) where the target is above 1.
LazyTensor poisson_nll_loss(const LazyTensor& input, const LazyTensor& target, bool log_input = true,
                            bool full = false, double eps = 1e-8, Reduction reduction = Reduction::mean);

}  // namespace caldera
