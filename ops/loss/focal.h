// Losses of networks on images and of embeddings that ranking.h and regression.h do not have. By
// <caldera/losses.h>.
//
// Operands must be floating (DTypeError) and broadcast (ShapeError); of 16-bit types the loss is computed in
// float32 and rounded once.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "ops/loss/reduction.h"

namespace caldera {

/// Holds the numbers of a focal loss. alpha < 0: classes weigh the same.
struct FocalOptions {
  double alpha = 0.25;
  double gamma = 2;
  Reduction reduction = Reduction::mean;
};
/// a (1 - q)^gamma (-log q) of logits and targets in [0, 1], where q = p t + (1 - p)(1 - t) with p =
/// sigmoid(input) and a = alpha t + (1 - alpha)(1 - t) (Lin et al. 2017; torchvision.ops.sigmoid_focal_loss).
/// Without overflow.
LazyTensor focal_loss(const LazyTensor& input, const LazyTensor& target, const FocalOptions& options = {});

/// max(0, margin - target * input) with targets of 1 and -1, which may have any type of numbers: the loss of
/// a support vector machine.
LazyTensor hinge_loss(const LazyTensor& input, const LazyTensor& target, double margin = 1,
                      Reduction reduction = Reduction::mean);

/// Half of t d^2 + (1 - t) max(0, margin - d)^2, with d the Euclidean distance of the vectors along the last
/// axis and t 1 for pairs that belong together, 0 for others (Hadsell, Chopra and LeCun 2006). a and b are
/// (..., features), target is (...). The gradient where d is 0 is 0.
LazyTensor contrastive_loss(const LazyTensor& a, const LazyTensor& b, const LazyTensor& target,
                            double margin = 1, Reduction reduction = Reduction::mean);

}  // namespace caldera
