// Resampling of images and signals over 1, 2 or 3 spatial axes, with PyTorch's coordinates. Part of
// ops/ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

enum class Interpolation {
  nearest,        // the element at floor(i * ratio)
  nearest_exact,  // the element at floor((i + 1/2) * ratio), as other libraries' "nearest"
  linear,         // between two neighbours along each axis: bilinear, trilinear
  cubic,          // between four, by Keys' convolution (1981) with a = -3/4: bicubic
  area            // the mean of the elements that it covers: adaptive_avg_pool()
};

struct InterpolateOptions {
  /// The spatial extents of the result, or factors for those of x: one of both, with one value for every
  /// spatial axis or one each. Factors give floor(extent * factor) elements.
  std::vector<std::int64_t> size = {};
  std::vector<double> scale_factor = {};
  Interpolation mode = Interpolation::nearest;
  /// Linear and cubic only: the first and last elements of x and of the result coincide, instead of the outer
  /// edges of theirs.
  bool align_corners = false;
  /// Coordinates go by the extents even where factors were given (and rounded down).
  bool recompute_scale_factor = false;
  /// Linear and cubic only: where there are fewer elements than in x, each is a weighted mean of all that are
  /// near it, by the same function stretched (Pillow's resize; cubic then has a = -1/2).
  bool antialias = false;
};

/// x (N, C, D...) resampled to other spatial extents, one axis after the other. Beyond the outermost elements
/// they are repeated. Throws ShapeError and ValueError.
LazyTensor interpolate(const LazyTensor& x, const InterpolateOptions& options);

}  // namespace caldera
