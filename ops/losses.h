// Losses as compositions of primitives. Declared once: caldera::v1 and training/nn/loss.h both build on
// these.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct CrossEntropyOptions {
  /// Positions whose target equals this count for nothing, smoothing included.
  std::optional<std::int64_t> ignore_index;
  /// Share of the probability spread evenly over all classes, in [0, 1), as in PyTorch's label_smoothing.
  double label_smoothing = 0;
};

/// Both have the shape of the targets, and the dtype of the logits (f32 for 16-bit logits).
struct CrossEntropyTerms {
  /// Negative log likelihood in natural logarithms; 0 where the target is ignored.
  LazyTensor losses;
  /// 1 where the target counts, 0 where it is ignored. Multiply a mask in before taking the mean.
  LazyTensor weights;
};

/// Cross-entropy position by position. `logits` is (..., classes) and floating, `targets` is (...) and
/// integer. A target outside [0, classes) that is not ignore_index gives NaN at its position: it cannot be
/// found out before the data are computed, and must not pass for a loss. Logits of -inf are allowed in
/// classes other than the target's (but not together with smoothing, which would make the loss infinite).
/// Throws ShapeError, DTypeError or ValueError.
CrossEntropyTerms cross_entropy_terms(const LazyTensor& logits, const LazyTensor& targets,
                                      const CrossEntropyOptions& options = {});

/// sum(values * weights) / sum(weights), a scalar; 0 when all weights are 0. Positions of weight 0 do not
/// count even if their value is NaN.
LazyTensor weighted_mean(const LazyTensor& values, const LazyTensor& weights);

/// The mean of the terms over the positions that count; 0 when none does.
LazyTensor mean_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                              const CrossEntropyOptions& options = {});

}  // namespace caldera
