// Windows over the spatial axes of images and signals, (examples, channels, spatial axes ...): what
// convolutions and pooling share.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/core/slicing.h"
#include "ops/spatial/spatial.h"

namespace caldera::windows {

inline constexpr int kLead = 2;  // examples and channels come first

/// A setting for each of `n` spatial axes. Throws ValueError for another number of them or less than `least`.
Spatial each(const char* op, const char* what, const Spatial& given, int n, std::int64_t least);
/// Counts the spatial axes of x. Throws ShapeError unless 1 to 3, DTypeError unless x is floating.
int spatial_axes(const char* op, const LazyTensor& x);
/// pad() along the spatial axes.
LazyTensor padded(const LazyTensor& x, const Spatial& low, const Spatial& high, FillValue value,
                  const Spatial& interior = {});

/// Windows over the spatial axes of a tensor that is padded already.
struct Windows {
  Spatial kernel, stride, dilation;
  Spatial counts;  // of windows along each axis

  Windows(const char* op, const LazyTensor& padded, Spatial of_kernel, Spatial of_stride, Spatial of_dilation)
      : kernel(std::move(of_kernel)), stride(std::move(of_stride)), dilation(std::move(of_dilation)) {
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const std::int64_t extent = padded.shape(static_cast<int>(i) + kLead);
      const std::int64_t window = dilation[i] * (kernel[i] - 1) + 1;
      if (extent < window)
        throw ShapeError(
            fmt::format("{}: a window of {} does not fit {} (padding included) along spatial axis {}", op,
                        window, extent, i));
      counts.push_back((extent - window) / stride[i] + 1);
    }
  }

  /// Calls visit(elements) for each position in the window, in row-major order: the elements at that position
  /// of all windows.
  template <class Visit>
  void for_each(const LazyTensor& padded, Visit visit) const {
    Spatial at(kernel.size(), 0);
    for (;;) {
      LazyTensor part = padded;
      for (std::size_t i = 0; i < kernel.size(); ++i) {
        const std::int64_t start = at[i] * dilation[i];
        part = slice(part, static_cast<int>(i) + kLead, start, start + (counts[i] - 1) * stride[i] + 1,
                     stride[i]);
      }
      visit(part);
      std::size_t axis = kernel.size();
      while (axis > 0 && ++at[axis - 1] == kernel[axis - 1]) at[--axis] = 0;
      if (axis == 0) return;
    }
  }
};

}  // namespace caldera::windows
