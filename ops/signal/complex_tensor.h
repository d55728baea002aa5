// ComplexTensor: complex numbers as two real tensors. Part of ops/ops.h.
//
// A pair of handles and no type of the engine: every operation is made of operations on the parts, so that
// gradients, forward mode, vmap, fusion and every device follow. Derivatives are those by the real and the
// imaginary part as real variables. view_as_real() makes one tensor of it, for what takes tensors alone.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"

namespace caldera {

/// Complex numbers: parts of one shape, floating type and device. A cheap handle, as LazyTensor is; empty
/// unless made of something. Functions that real tensors have too (abs, exp, matmul, sum, reshape, ...) are
/// friends: abs(z), without a namespace in front.
class ComplexTensor {
 public:
  ComplexTensor() = default;
  /// Takes parts that broadcast and promote. Throws ShapeError, DeviceError.
  ComplexTensor(const LazyTensor& real, const LazyTensor& imag);
  /// Takes real numbers, whose imaginary parts are 0.
  explicit ComplexTensor(const LazyTensor& real);
  /// One number, which takes the type of the tensor beside it.
  ComplexTensor(std::complex<double> value);

  bool defined() const { return real_.defined(); }
  const LazyTensor& real() const { return real_; }
  const LazyTensor& imag() const { return imag_; }
  const Shape& shape() const { return real_.shape(); }
  std::int64_t shape(int axis) const { return real_.shape(axis); }
  int rank() const { return real_.rank(); }
  std::int64_t numel() const { return real_.numel(); }
  DType dtype() const { return real_.dtype(); }  // of the parts
  Device device() const { return real_.device(); }
  /// Computes both parts and waits. Returns *this.
  const ComplexTensor& eval() const;

  /// The magnitude, without overflow in between; its slope at 0 is 0.
  LazyTensor abs() const;
  ComplexTensor exp() const;
  /// The principal logarithm, whose imaginary part is angle().
  ComplexTensor log() const;
  /// The matrix product, as matmul() of real tensors: of four such.
  ComplexTensor matmul(const ComplexTensor& other) const;

  // Operations that move elements, or add them up, do so with both parts.
  ComplexTensor sum(const Axes& axes = {}, bool keepdims = false) const;
  ComplexTensor mean(const Axes& axes = {}, bool keepdims = false) const;
  ComplexTensor astype(DType dtype) const;  // of the parts
  ComplexTensor reshape(const Shape& shape) const;
  ComplexTensor permute_dims(const std::vector<int>& axes) const;
  ComplexTensor transpose() const;
  ComplexTensor swapaxes(AxisIndex a, AxisIndex b) const;
  ComplexTensor squeeze(const Axes& axes = {}) const;
  ComplexTensor expand_dims(AxisIndex axis) const;
  ComplexTensor broadcast_to(const Shape& shape) const;
  ComplexTensor slice(AxisIndex axis, std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                      std::int64_t step = 1) const;
  ComplexTensor roll(const std::vector<std::int64_t>& shifts, const Axes& axes) const;
  ComplexTensor flip(const Axes& axes = {}) const;
  /// The parts one behind the other along an axis.
  static ComplexTensor concatenated(const std::vector<ComplexTensor>& parts, int axis);

  friend LazyTensor abs(const ComplexTensor& x) { return x.abs(); }
  friend ComplexTensor exp(const ComplexTensor& x) { return x.exp(); }
  friend ComplexTensor log(const ComplexTensor& x) { return x.log(); }
  friend ComplexTensor matmul(const ComplexTensor& a, const ComplexTensor& b) { return a.matmul(b); }
  friend ComplexTensor sum(const ComplexTensor& x, const Axes& axes = {}, bool keepdims = false) {
    return x.sum(axes, keepdims);
  }
  friend ComplexTensor mean(const ComplexTensor& x, const Axes& axes = {}, bool keepdims = false) {
    return x.mean(axes, keepdims);
  }
  friend ComplexTensor astype(const ComplexTensor& x, DType dtype) { return x.astype(dtype); }
  friend ComplexTensor reshape(const ComplexTensor& x, const Shape& shape) { return x.reshape(shape); }
  friend ComplexTensor permute_dims(const ComplexTensor& x, const std::vector<int>& axes) {
    return x.permute_dims(axes);
  }
  friend ComplexTensor transpose(const ComplexTensor& x) { return x.transpose(); }
  friend ComplexTensor swapaxes(const ComplexTensor& x, AxisIndex a, AxisIndex b) { return x.swapaxes(a, b); }
  friend ComplexTensor squeeze(const ComplexTensor& x, const Axes& axes = {}) { return x.squeeze(axes); }
  friend ComplexTensor expand_dims(const ComplexTensor& x, AxisIndex axis) { return x.expand_dims(axis); }
  friend ComplexTensor broadcast_to(const ComplexTensor& x, const Shape& shape) {
    return x.broadcast_to(shape);
  }
  friend ComplexTensor slice(const ComplexTensor& x, AxisIndex axis, std::optional<std::int64_t> start,
                             std::optional<std::int64_t> stop, std::int64_t step = 1) {
    return x.slice(axis, start, stop, step);
  }
  friend ComplexTensor roll(const ComplexTensor& x, const std::vector<std::int64_t>& shifts,
                            const Axes& axes) {
    return x.roll(shifts, axes);
  }
  friend ComplexTensor flip(const ComplexTensor& x, const Axes& axes = {}) { return x.flip(axes); }
  friend ComplexTensor concatenate(const std::vector<ComplexTensor>& parts, AxisIndex axis = 0) {
    return concatenated(parts, axis);
  }

 private:
  LazyTensor real_, imag_;
};

/// Complex numbers of a last axis of 2, (..., real and imaginary part), and the way back. ShapeError for
/// another last axis.
ComplexTensor view_as_complex(const LazyTensor& x);
LazyTensor view_as_real(const ComplexTensor& x);
/// magnitude * (cos(angle) + i sin(angle)): torch.polar.
ComplexTensor from_polar(const LazyTensor& magnitude, const LazyTensor& angle);

LazyTensor real(const ComplexTensor& x);
LazyTensor imag(const ComplexTensor& x);
ComplexTensor conj(const ComplexTensor& x);
/// The argument, in [-pi, pi].
LazyTensor angle(const ComplexTensor& x);

/// Operands broadcast and promote part by part. Quotients neither overflow nor vanish where the result does
/// not.
ComplexTensor operator+(const ComplexTensor& a, const ComplexTensor& b);
ComplexTensor operator-(const ComplexTensor& a, const ComplexTensor& b);
ComplexTensor operator*(const ComplexTensor& a, const ComplexTensor& b);
ComplexTensor operator/(const ComplexTensor& a, const ComplexTensor& b);
ComplexTensor operator-(const ComplexTensor& x);
ComplexTensor operator+(const ComplexTensor& a, const LazyTensor& b);
ComplexTensor operator+(const LazyTensor& a, const ComplexTensor& b);
ComplexTensor operator-(const ComplexTensor& a, const LazyTensor& b);
ComplexTensor operator-(const LazyTensor& a, const ComplexTensor& b);
ComplexTensor operator*(const ComplexTensor& a, const LazyTensor& b);
ComplexTensor operator*(const LazyTensor& a, const ComplexTensor& b);
ComplexTensor operator/(const ComplexTensor& a, const LazyTensor& b);
ComplexTensor operator/(const LazyTensor& a, const ComplexTensor& b);

}  // namespace caldera
