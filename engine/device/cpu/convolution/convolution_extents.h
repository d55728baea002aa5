// ConvolutionExtents: the numbers of a convolution by their names. Private to engine/device/cpu/.
#pragma once

#include <array>
#include <cstdint>

#include "engine/graph/convolution_node.h"

namespace caldera::cpu {

/// Names the extents of x (images, channels, height, width), w (outputs, channels of a group, kernel) and y.
struct ConvolutionExtents {
  ConvolutionExtents(const ConvolutionNode& node, const Shape& x, const Shape& w, const Shape& y)
      : images(x[0]),
        groups(node.groups),
        channels(w[1]),
        outputs(w[0] / node.groups),
        in{x[2], x[3]},
        out{y[2], y[3]},
        kernel{w[2], w[3]},
        stride(node.stride),
        padding(node.padding),
        dilation(node.dilation) {}

  std::int64_t images, groups;
  std::int64_t channels, outputs;  // of a group
  std::array<std::int64_t, 2> in, out, kernel, stride, padding, dilation;

  std::int64_t in_area() const { return in[0] * in[1]; }
  std::int64_t out_area() const { return out[0] * out[1]; }
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  bool is_depthwise() const { return channels == 1 && outputs == 1 && groups > 1; }
};

}  // namespace caldera::cpu
