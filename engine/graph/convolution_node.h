// ConvolutionNode: what an operation of OpClass::convolution computes. The contract between ops/, the
// compiler and the device that has the kernels.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/tensor/shape.h"

namespace caldera {

/// Three products of one sum over n, o, c, i, j, k, l of
///
///   y[n, o, i, j] w[o, c, k, l] x[n, c, i s - p + k d, j s - p + l d]
///
/// (x is 0 outside; c counts within o's group), each the derivative of it by one of the three.
enum class ConvolutionWork : std::uint8_t {
  forward,          // y of x, w
  input_gradient,   // x of y, w
  weight_gradient,  // w of x, y
};

/// Describes a node by its attributes. Its two inputs and its output are x (N, C, H, W), w (O, C / groups, K,
/// L) and y (N, O, I, J), all of one type, f32 or f64.
struct ConvolutionNode {
  ConvolutionWork work{};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};  // ahead of the image; what is behind follows from the extents
  std::array<std::int64_t, 2> dilation{1, 1};
  std::int64_t groups = 1;

  using Attributes = std::array<std::int64_t, 8>;
  Attributes attributes() const {
    return {static_cast<std::int64_t>(work),
            stride[0],
            stride[1],
            padding[0],
            padding[1],
            dilation[0],
            dilation[1],
            groups};
  }
  static ConvolutionNode of(std::span<const std::int64_t> a) {
    return {.work = static_cast<ConvolutionWork>(a[0]),
            .stride = {a[1], a[2]},
            .padding = {a[3], a[4]},
            .dilation = {a[5], a[6]},
            .groups = a[7]};
  }
  /// Picks x, w and y of the inputs `a`, `b` and the output.
  template <class T>
  const T& x(const T& a, const T& /*b*/, const T& out) const {
    return work == ConvolutionWork::input_gradient ? out : a;
  }
  template <class T>
  const T& w(const T& /*a*/, const T& b, const T& out) const {
    return work == ConvolutionWork::weight_gradient ? out : b;
  }
  template <class T>
  const T& y(const T& a, const T& b, const T& out) const {
    return work == ConvolutionWork::forward ? out : work == ConvolutionWork::input_gradient ? a : b;
  }
  /// Floating-point operations, of shapes; those that meet the padding count.
  double flops(const Shape& a, const Shape& b, const Shape& out) const {
    const Shape &image = y(a, b, out), &weight = w(a, b, out);
    return 2 * static_cast<double>(image.numel()) * static_cast<double>(weight[1] * weight[2] * weight[3]);
  }
};

}  // namespace caldera
