// Channels and spatial axes traded for each other, windows as columns, and the way back; names and orders of
// PyTorch but where said. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"
#include "ops/spatial/spatial.h"

namespace caldera {

/// (..., C r^2, H, W) as (..., C, H r, W r): each r^2 channels are one of r times finer images. ShapeError
/// for fewer than 3 axes or channels that r^2 does not divide, ValueError unless r > 0.
LazyTensor pixel_shuffle(const LazyTensor& x, std::int64_t upscale_factor);
/// (..., C, H r, W r) as (..., C r^2, H, W): undoes pixel_shuffle().
LazyTensor pixel_unshuffle(const LazyTensor& x, std::int64_t downscale_factor);
/// The channels of x (N, C, ...), one of each group in turn: (groups, C / groups) transposed. ShapeError for
/// fewer than 3 axes or channels that `groups` does not divide.
LazyTensor channel_shuffle(const LazyTensor& x, std::int64_t groups);

struct ColumnOptions {
  Spatial dilation = {1};
  Spatial padding = {0};  // zeros on both sides
  Spatial stride = {1};
};
/// The windows of x (N, C, D...), 1 to 3 spatial axes, as columns: (N, C prod(kernel), windows). It is
/// torch.nn.functional.unfold; unfold() here is Tensor.unfold.
LazyTensor im2col(const LazyTensor& x, const Spatial& kernel, const ColumnOptions& options = {});
/// Adds the columns (N, C prod(kernel), windows) up where im2col() of (N, C, output_size...) would read them:
/// torch.nn.functional.fold. ShapeError for another number of windows.
LazyTensor col2im(const LazyTensor& columns, const Spatial& output_size, const Spatial& kernel,
                  const ColumnOptions& options = {});

}  // namespace caldera
