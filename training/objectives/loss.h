// Losses of language models, over the terms of ops/loss/cross_entropy.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lm/models/causal_lm.h"
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

/// Tells log_probabilities_of_head about a head.
struct HeadTraits {
  /// Whether something that the head captures is differentiated. Where it is false such a gradient is a
  /// GradientError.
  bool is_trained = true;
  /// The head as one matrix, where it is one (CausalLM::linear_head).
  std::optional<LinearHead> matrix = {};
  /// Rows whose logits are computed at a time, and of them classes at a time; 0: chosen for the sizes.
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};

/// Rows whose logits are computed at a time: as many as have f32 logits of 32 MiB, but at least an eighth of
/// the features that the head reads. So a part reads the head's matrix for so many rows that their products,
/// not the reading, take the time; and its logits are at most half as large as that matrix in f32, or 32 MiB.
std::int64_t rows_at_a_time(std::int64_t classes, std::int64_t features);

/// cross_entropy_sum(head(hidden), targets, weights) in f32 or wider, for hidden (..., hidden) and a number
/// of classes that head gives: at most `rows` rows at a time, in parts of (nearly) one length; 0 is
/// rows_at_a_time(). So neither the logits nor their gradient ever are one tensor of all rows. The same to
/// rounding: sums of parts are added up. Throws as cross_entropy_sum does.
///
/// What comes to the loss of a row from what is made of the sums is known beforehand where those are only
/// scaled; then a part's logits are gone before the next part's are made. Losses that are no sum over rows
/// have log_probabilities_of_head(), which is the faster one for a head that is not trained, too.
CrossEntropySum head_cross_entropy_sum(const LazyTensor& hidden, std::int64_t classes, const Head& head,
                                       const LazyTensor& targets, const LazyTensor& weights = {},
                                       const CrossEntropyOptions& options = {}, std::int64_t rows = 0);

/// The log-probability of each target, in nats: hidden (..., hidden), targets (...) i32 to (...), f32 or
/// wider. The logits of all rows are never there at once, forward or backward, whatever is made of the
/// result, unless they are few (32 MiB):
///
/// - A head that is not trained and is a matrix is read some classes at a time; sums of exponentials, and of
///   the gradient of `hidden`, go on from block to block with the largest logit so far (Milakov and
///   Gimelshein 2018, "Online normalizer calculation for softmax"). Nothing is computed twice.
/// - Another head that is not trained is read some rows at a time. The gradient of their log-probabilities is
///   computed while their logits are there, and multiplied later by what comes to each row.
/// - Of a head that is trained the backward pass makes the logits of some rows again (checkpoint()).
///
/// A target outside of [0, classes) gives NaN. Throws as cross_entropy_sum does.
LazyTensor log_probabilities_of_head(const LazyTensor& hidden, std::int64_t classes, const Head& head,
                                     const LazyTensor& targets, const HeadTraits& traits = {});

/// Hidden states (..., features), and the head that makes logits of them.
struct Headed {
  LazyTensor hidden;
  Head head;
};

/// The sum over rows of weight * KL(p || q) in nats, a scalar, for p = softmax(teacher's logits /
/// temperature) and q of the student's alike; weights (...), hidden states (..., features of each). Computed
/// rows_at_a_time() rows at a time, as head_cross_entropy_sum() is; a row of weight 0 does not count.
LazyTensor head_divergence_sum(const Headed& teacher, const Headed& student, std::int64_t classes,
                               double temperature, const LazyTensor& weights, std::int64_t rows = 0);

/// The mean: sum(w * nll) / sum(w), a scalar; 0 if no position counts. (Weights of classes, or none:
/// cross_entropy() of ops/loss/cross_entropy.h.)
LazyTensor weighted_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options = {});

}  // namespace caldera
