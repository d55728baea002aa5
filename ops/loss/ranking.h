// Losses that keep values, classes or vectors apart, and the distances of vectors that they are made of, with
// PyTorch's names and defaults. Part of ops/ops.h.
//
// Operands must be floating (DTypeError) and broadcast where nothing else is said (ShapeError); of 16-bit
// types the loss is computed in float32 and rounded once. Targets of 1 and -1 may have any type of numbers,
// and do not decide on the type of the result. The slope of max(0, x) at 0 is 0.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "ops/loss/reduction.h"

namespace caldera {

/// The sum over an axis of a * b, over their norms, each of which is at least eps. The gradient where a norm
/// is 0 is 0.
LazyTensor cosine_similarity(const LazyTensor& a, const LazyTensor& b, AxisIndex axis = 1, double eps = 1e-8);
/// The p-norm of a - b + eps over the last axis.
LazyTensor pairwise_distance(const LazyTensor& a, const LazyTensor& b, double p = 2, double eps = 1e-6,
                             bool keepdims = false);

/// input where the target is 1, max(0, margin - input) where it is -1.
LazyTensor hinge_embedding_loss(const LazyTensor& input, const LazyTensor& target, double margin = 1,
                                Reduction reduction = Reduction::mean);
/// max(0, margin - target * (a - b)).
LazyTensor margin_ranking_loss(const LazyTensor& a, const LazyTensor& b, const LazyTensor& target,
                               double margin = 0, Reduction reduction = Reduction::mean);
/// log(1 + exp(-target * input)), without overflow.
LazyTensor soft_margin_loss(const LazyTensor& input, const LazyTensor& target,
                            Reduction reduction = Reduction::mean);
/// binary_cross_entropy_with_logits, times a weight for each class (which broadcasts), and its mean over the
/// last axis. Input and target have one shape.
LazyTensor multilabel_soft_margin_loss(const LazyTensor& input, const LazyTensor& target,
                                       const LazyTensor& weight = {}, Reduction reduction = Reduction::mean);
/// The sum over classes j other than the target t of max(0, margin - input[t] + input[j])^p, times weight[t],
/// over the number of classes. input is (..., classes), target (...) integer; one that is no class gives NaN.
/// ValueError unless p is 1 or 2.
LazyTensor multi_margin_loss(const LazyTensor& input, const LazyTensor& target, int p = 1, double margin = 1,
                             const LazyTensor& weight = {}, Reduction reduction = Reduction::mean);

/// The sum over targets t and classes j that are none of max(0, 1 - input[t] + input[j]), over the number of
/// classes. input and target, of integers, are (..., classes); the first negative target ends them. A target
/// of no class gives NaN.
LazyTensor multilabel_margin_loss(const LazyTensor& input, const LazyTensor& target,
                                  Reduction reduction = Reduction::mean);

struct TripletMarginOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  /// Take the positive's distance to the negative where that is shorter than the anchor's (Balntas et al.
  /// 2016).
  bool swap = false;
  Reduction reduction = Reduction::mean;
};
/// max(0, d(anchor, positive) - d(anchor, negative) + margin) with d of pairwise_distance: one loss for each
/// vector along the last axis.
LazyTensor triplet_margin_loss(const LazyTensor& anchor, const LazyTensor& positive,
                               const LazyTensor& negative, const TripletMarginOptions& options = {});

/// 1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1. a and b are (...,
/// features), target is (...).
LazyTensor cosine_embedding_loss(const LazyTensor& a, const LazyTensor& b, const LazyTensor& target,
                                 double margin = 0, Reduction reduction = Reduction::mean);

}  // namespace caldera
