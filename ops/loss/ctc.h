// Connectionist temporal classification. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"
#include "ops/loss/reduction.h"

namespace caldera {

struct CtcOptions {
  std::int64_t blank = 0;
  Reduction reduction = Reduction::mean;  // of losses over the lengths of their targets (at least 1)
  bool zero_infinity = false;             // losses of targets that do not fit are 0 instead of infinite
};

/// -log of the probability that log_probs (T, N, C), logarithms of the classes' probabilities at each time,
/// give targets (N, S), integers other than the blank, once repetitions and blanks are left out (Graves et
/// al. 2006). Of example n the first input_lengths[n] times and the first target_lengths[n] targets count;
/// lengths are integers, (N). Computed in logarithms, one time after the other, in a graph that grows with T.
///
/// The gradient is that of the loss by log_probs: PyTorch's has the softmax of them added, which a
/// log_softmax ahead takes out again. A target outside of [0, C) gives NaN. Throws ShapeError, DTypeError,
/// ValueError.
LazyTensor ctc_loss(const LazyTensor& log_probs, const LazyTensor& targets, const LazyTensor& input_lengths,
                    const LazyTensor& target_lengths, const CtcOptions& options = {});

}  // namespace caldera
