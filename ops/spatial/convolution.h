// Convolutions over 1, 2 or 3 spatial axes, PyTorch's layouts and conventions: composites of
// primitives. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "ops/spatial/spatial.h"

namespace caldera {

struct ConvOptions {
  Spatial stride = {1};    // positive
  Spatial padding = {0};   // zeros on both sides
  Spatial dilation = {1};  // positive: distance between the kernel's elements
  std::int64_t groups = 1;
  Spatial output_padding = {0};  // transposed only: further elements at the high end, fewer than the stride
  /// conv only: PyTorch's padding="same" instead of `padding`, which is 0 then: as many zeros as give the
  /// result x's extents, an odd one of them at the high end. Strides are 1. ("valid" is a padding of 0.)
  bool same = false;
};

/// Cross-correlation: x (N, C, D...), weight (O, C / groups, K...), bias (O) or none; the result is
/// (N, O, (D + 2 padding - dilation (K - 1) - 1) / stride + 1 ...). The number of spatial axes (1 to 3) is
/// that of x. One matrix product over the patches. Throws ShapeError and ValueError.
LazyTensor conv(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias = {},
                const ConvOptions& options = {});
/// The gradient of conv with respect to its x, as an operation: weight (C, O / groups, K...), the result is
/// (N, O, (D - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1 ...).
LazyTensor conv_transpose(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias = {},
                          const ConvOptions& options = {});

}  // namespace caldera
