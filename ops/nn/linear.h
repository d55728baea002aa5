// Layers that are products with weights. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x (..., in) times the transpose of weight (out, in), or by weight (in), plus bias (out) or of no axes, if
/// there is one (torch.nn.functional.linear). Throws ShapeError; DTypeError unless all are floating.
LazyTensor linear(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias = {});
/// a (..., in1) and b (..., in2), alike but for the last axis, by weight (out, in1, in2): sums of a_i
/// weight_kij b_j, plus bias (out) if there is one (torch.nn.functional.bilinear).
LazyTensor bilinear(const LazyTensor& a, const LazyTensor& b, const LazyTensor& weight,
                    const LazyTensor& bias = {});

}  // namespace caldera
