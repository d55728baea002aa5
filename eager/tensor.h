// Tensor of the eager API: a value that has been computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "eager/device.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera::v1 {

/// Stands for a number next to a tensor: it takes the tensor's dtype where the kinds agree, as a Python
/// number does.
class Scalar {
 public:
  Scalar(double value) : value_(value) {}  // NOLINT(google-explicit-constructor): t * 2 is the point of it
  Scalar(float value) : value_(value) {}   // NOLINT(google-explicit-constructor)
  Scalar(int value) : value_(value) {}     // NOLINT(google-explicit-constructor)
  const LazyTensor& lazy() const { return value_; }

 private:
  LazyTensor value_;
};

/// An immutable array on a device. Copies are cheap and share the data. Every operation computes its result
/// before it returns and throws what is wrong with it (ShapeError, DTypeError, DeviceError …) right there.
/// To differentiation it is a constant, unless it was made from the variables of a `value_and_grad` inside
/// it. A default-constructed tensor is empty: it may be assigned to and tested with `defined()`, nothing
/// else. May be read from any number of threads.
class Tensor {
 public:
  Tensor() = default;
  /// Evaluates. The bridge from lazy to eager.
  explicit Tensor(const LazyTensor& lazy);
  /// Makes a tensor of a result that was built from `operands` alone: a constant where they all are. (A lazy
  /// tensor that was evaluated is not one: it had a history, and a gradient that should pass through it is
  /// refused.)
  static Tensor computed(const LazyTensor& result, std::initializer_list<const Tensor*> operands);
  /// Makes a tensor of what a call computed: a constant, unless something is being differentiated.
  static Tensor of_call(const LazyTensor& result);
  /// Copies host data, row-major. Throws ShapeError when the number of elements differs from the shape's.
  template <class T>
  Tensor(const std::vector<T>& data, const Shape& shape, const Device& device = Device::cpu())
      : Tensor(LazyTensor::from_vector(data, shape, device)) {}
  template <class T>
  Tensor(std::initializer_list<T> data, const Shape& shape, const Device& device = Device::cpu())
      : Tensor(LazyTensor::from_span(std::span(data.begin(), data.size()), shape, device)) {}
  template <class T>
  static Tensor from_slice(std::span<const T> data, const Shape& shape,
                           const Device& device = Device::cpu()) {
    return Tensor(LazyTensor::from_span(data, shape, device));
  }
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32, const Device& device = Device::cpu());
  static Tensor ones(const Shape& shape, DType dtype = DType::f32, const Device& device = Device::cpu());
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32,
                     const Device& device = Device::cpu());
  /// Normal with mean 0 and deviation 1: a pure function of shape and seed, the same on every device.
  static Tensor randn(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32,
                      const Device& device = Device::cpu());

  bool defined() const { return static_cast<bool>(state_); }
  const Shape& shape() const { return lazy().shape(); }
  int rank() const { return shape().rank(); }
  std::int64_t numel() const { return shape().numel(); }
  DType dtype() const { return lazy().dtype(); }
  Device device() const { return Device::from(lazy().device()); }
  /// Copies to the host, row-major. T must be the C++ type of dtype(); throws DTypeError otherwise.
  template <class T = float>
  std::vector<T> to_vector() const {
    return lazy().to_vector<T>();
  }
  /// The element at an index, converted to T; negative indices count from the end. Throws ShapeError for a
  /// wrong number of indices or one outside. The first call copies the tensor to the host and keeps the copy.
  template <class T = float>
  T at(std::initializer_list<std::int64_t> index) const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<T>(integer_at({index.begin(), index.size()}));
    else
      return static_cast<T>(real_at({index.begin(), index.size()}));
  }
  /// The only element, converted to T. Throws ShapeError if there is more than one.
  template <class T = float>
  T item() const {
    return lazy().item<T>();
  }
  /// "Tensor(shape=(2, 3), dtype=float32, device=cpu)"
  std::string to_string() const;

  Tensor add(const Tensor& other) const;
  Tensor sub(const Tensor& other) const;
  Tensor mul(const Tensor& other) const;
  Tensor div(const Tensor& other) const;
  /// Matrix product with the Array API's rules for 1-D operands and broadcast batches.
  Tensor matmul(const Tensor& other) const;
  Tensor reshape(const Shape& shape) const;
  /// Swaps the last two axes.
  Tensor transpose() const;
  Tensor astype(DType dtype) const;
  /// A copy on `device`; gradients come back from there.
  Tensor to_device(const Device& device) const;
  /// Over all elements, to a scalar.
  Tensor sum() const;
  Tensor mean() const;

  /// Over the last axis, with the maximum subtracted first.
  Tensor softmax_stable() const;
  /// (x - mean) / sqrt(variance + eps) over the last axis.
  Tensor layer_norm(double eps) const;
  /// x / sqrt(mean(x^2) + eps) over the last axis.
  Tensor rms_norm(double eps) const;
  /// scaling * ((x @ a) @ b): x is (..., in), a is (in, rank), b is (rank, out); the result is (..., out).
  Tensor lora_forward_fused(const Tensor& a, const Tensor& b, double scaling) const;
  /// The names of the original's fused kernels. Here they run the same kernels as the plain names do, and
  /// have gradients.
  Tensor softmax_fused() const { return softmax_stable(); }
  Tensor rms_norm_fused(double eps) const { return rms_norm(eps); }

  /// The bridge from eager to lazy: the same value, without copying. Throws Error when empty.
  const LazyTensor& lazy() const;

 private:
  struct State;
  double real_at(std::span<const std::int64_t> index) const;
  std::int64_t integer_at(std::span<const std::int64_t> index) const;
  const std::byte* element(std::span<const std::int64_t> index) const;
  std::shared_ptr<State> state_;
};

inline Tensor operator+(const Tensor& a, const Tensor& b) { return a.add(b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return a.sub(b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return a.mul(b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return a.div(b); }
Tensor operator+(const Tensor& a, const Scalar& b);
Tensor operator-(const Tensor& a, const Scalar& b);
Tensor operator*(const Tensor& a, const Scalar& b);
Tensor operator/(const Tensor& a, const Scalar& b);
Tensor operator+(const Scalar& a, const Tensor& b);
Tensor operator-(const Scalar& a, const Tensor& b);
Tensor operator*(const Scalar& a, const Tensor& b);
Tensor operator/(const Scalar& a, const Tensor& b);
Tensor operator-(const Tensor& x);

}  // namespace caldera::v1
