// Normalisations of tensors (batch, channels, ...). Part of ops/ops.h.
//
// x is floating (DTypeError), of rank 2 or more where nothing else is said; axis 1 is that of the channels.
// Weight and bias are (channels) or undefined (ShapeError otherwise). Statistics are computed in float32 at
// least. The result has the type that x promotes to with weight and bias.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct BatchNormOptions {
  /// Normalise with the statistics of x, and move the running ones towards them by `momentum`. Otherwise
  /// normalise with the running ones.
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;  // 0 or more (ValueError), as that of the others
};

struct BatchNormResult {
  LazyTensor output;
  /// After this call: new ones in training, otherwise those that were given. Undefined where none were given.
  LazyTensor running_mean, running_var;
};

/// (x - mean) / sqrt(var + eps) * weight + bias for each channel (Ioffe and Szegedy 2015). Nothing is changed
/// in place: the caller keeps the running statistics of the result. They move towards the batch's mean and
/// its unbiased variance (x is normalised with the biased one), as in PyTorch; unlike there, gradients pass
/// through them. Running statistics may be undefined in training. ShapeError in training with fewer than 2
/// values a channel, ValueError where running statistics are needed and not given.
BatchNormResult batch_norm(const LazyTensor& x, const LazyTensor& running_mean, const LazyTensor& running_var,
                           const LazyTensor& weight = {}, const LazyTensor& bias = {},
                           const BatchNormOptions& options = {});

/// Each example's channels in `groups` groups of neighbours, which share mean and variance (Wu and He 2018).
/// ShapeError unless groups divides the channels.
LazyTensor group_norm(const LazyTensor& x, std::int64_t groups, const LazyTensor& weight = {},
                      const LazyTensor& bias = {}, double eps = 1e-5);

/// Every channel of every example by itself (Ulyanov, Vedaldi and Lempitsky 2016). ShapeError unless that are
/// 2 values or more.
LazyTensor instance_norm(const LazyTensor& x, const LazyTensor& weight = {}, const LazyTensor& bias = {},
                         double eps = 1e-5);

}  // namespace caldera
