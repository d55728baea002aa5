// Images read at places that a tensor gives, and the places of affine maps, with PyTorch's conventions. Part
// of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/shape.h"

namespace caldera {

/// Names how elements beside a place make its value: two along each axis, the nearest (halves to the even
/// one), or four (with a = -3/4; of images only).
enum class GridInterpolation : std::uint8_t { linear, nearest, cubic };
/// Names what is outside of the image: zeros, its outermost elements, or its mirror image.
enum class GridPadding : std::uint8_t { zeros, border, reflection };

struct GridSampleOptions {
  GridInterpolation mode = GridInterpolation::linear;
  GridPadding padding_mode = GridPadding::zeros;
  /// -1 and 1 are the centres of the outermost elements instead of their outer edges.
  bool align_corners = false;
};

/// x (N, C, H, W) at the places of `grid` (N, H', W', 2), each (x, y) from -1 to 1 across the image, as (N,
/// C, H', W'); or x (N, C, D, H, W) at those of a grid (N, D', H', W', 3) of (x, y, z). Differentiable by
/// both. Throws ShapeError, DTypeError unless both are floating, ValueError for cubic interpolation of
/// volumes.
LazyTensor grid_sample(const LazyTensor& x, const LazyTensor& grid, const GridSampleOptions& options = {});

/// The grid that an affine map of the places of a regular one makes: theta (N, 2, 3) with size (N, C, H, W)
/// gives (N, H, W, 2), theta (N, 3, 4) with size (N, C, D, H, W) gives (N, D, H, W, 3). Throws ShapeError.
LazyTensor affine_grid(const LazyTensor& theta, const Shape& size, bool align_corners = false);

}  // namespace caldera
