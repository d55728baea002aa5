// Losses for eager programs.
#pragma once

#include <cstdint>
#include <optional>

#include "eager/tensor.h"

namespace caldera::v1 {

/// Mean cross-entropy in natural logarithms, a scalar. `logits` is (..., classes), `targets` (...) of any
/// integer dtype. Positions whose target equals `ignore_index` count for nothing. Throws ShapeError or
/// DTypeError for operands that do not fit, TrainingError (Failed) for a target outside [0, classes), and
/// TrainingError (InvalidConfig) when every target is ignored.
Tensor cross_entropy_loss(const Tensor& logits, const Tensor& targets,
                          std::optional<std::int64_t> ignore_index = std::nullopt);

/// Computes the loss against (1 - smoothing) times the target plus smoothing / classes everywhere; ignored
/// positions count for nothing in either part. Throws ValueError unless smoothing is in [0, 1].
Tensor cross_entropy_loss_with_smoothing(const Tensor& logits, const Tensor& targets, double smoothing,
                                         std::optional<std::int64_t> ignore_index = std::nullopt);

}  // namespace caldera::v1
