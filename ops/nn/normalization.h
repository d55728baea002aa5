// Normalisations over the last axes: RMSNorm, LayerNorm. Those of channels: channel_normalization.h. Part of
// ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x / sqrt(mean(x^2) + eps) over the last axis (Zhang and Sennrich 2019), times weight if given.
LazyTensor rms_norm(const LazyTensor& x, double eps, const LazyTensor& weight = {});
/// (x - mean) / sqrt(variance + eps) over the last `axes` axes together (Ba, Kiros and Hinton 2016), times
/// weight, plus bias, which have the extents of those axes.
LazyTensor layer_norm(const LazyTensor& x, double eps, const LazyTensor& weight = {},
                      const LazyTensor& bias = {}, int axes = 1);

}  // namespace caldera
