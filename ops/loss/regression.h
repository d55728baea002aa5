// Losses of predicted values, with PyTorch's names and defaults. Part of ops/ops.h.
//
// Input and target broadcast. Both must be floating (DTypeError); of 16-bit types the loss is computed in
// float32 and rounded once.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "ops/loss/reduction.h"

namespace caldera {

/// (input - target)^2.
LazyTensor mse_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction = Reduction::mean);
/// |input - target|; the slope at 0 is 0.
LazyTensor l1_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction = Reduction::mean);
/// d^2 / 2 where |d| = |input - target| is below delta, else delta * (|d| - delta / 2) (Huber 1964).
/// ValueError unless delta > 0.
LazyTensor huber_loss(const LazyTensor& input, const LazyTensor& target,
                      Reduction reduction = Reduction::mean, double delta = 1);
/// huber_loss / beta (Girshick 2015); for beta = 0 l1_loss. ValueError for a negative beta.
LazyTensor smooth_l1_loss(const LazyTensor& input, const LazyTensor& target,
                          Reduction reduction = Reduction::mean, double beta = 1);

}  // namespace caldera
