// Losses of language models, over the terms of ops/loss/cross_entropy.h.
#pragma once

#include <cstdint>
#include <functional>

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

/// Maps rows (n, hidden) to logits (n, classes), row by row.
using Head = std::function<LazyTensor(const LazyTensor& rows)>;

/// Bytes of f32 logits that are computed at a time.
inline constexpr std::int64_t kMostLogitsBytes = std::int64_t{256} << 20;

/// cross_entropy_sum(head(hidden), targets, weights) in f32 or wider, for hidden (..., hidden) and a number
/// of classes that head gives: as many rows at a time as have logits of at most `most_bytes`, in parts of
/// (nearly) one length. So neither the logits nor their gradient ever are one tensor of all rows. The same to
/// rounding: sums of parts are added up. Throws as cross_entropy_sum does.
CrossEntropySum head_cross_entropy_sum(const LazyTensor& hidden, std::int64_t classes, const Head& head,
                                       const LazyTensor& targets, const LazyTensor& weights = {},
                                       const CrossEntropyOptions& options = {},
                                       std::int64_t most_bytes = kMostLogitsBytes);

/// The mean: sum(w * nll) / sum(w), a scalar; 0 if no position counts. (Weights of classes, or none:
/// cross_entropy() of ops/loss/cross_entropy.h.)
LazyTensor weighted_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options = {});

}  // namespace caldera
