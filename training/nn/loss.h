// Losses of language models, over the terms of ops/loss/cross_entropy.h.
#pragma once

#include "ops/loss/cross_entropy.h"

namespace caldera {

/// A weighted sum of losses and the sum of the weights. Adding both up over batches and dividing once gives
/// the exact mean over all tokens.
struct CrossEntropySum {
  LazyTensor loss;
  LazyTensor weight;
};

/// Cross-entropy in natural logarithms: logits (..., classes) floating, targets (...) i32, weights (...) or
/// undefined (all ones). A position of weight 0, or whose target is ignored, does not count; elsewhere a
/// target outside of [0, classes) gives NaN. Both results are scalars. Throws ShapeError / DTypeError for
/// operands that do not fit.
CrossEntropySum cross_entropy_sum(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights = {}, const CrossEntropyOptions& options = {});

/// The mean: sum(w * nll) / sum(w), a scalar; 0 if no position counts. (Weights of classes, or none:
/// cross_entropy() of ops/loss/cross_entropy.h.)
LazyTensor weighted_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options = {});

}  // namespace caldera
