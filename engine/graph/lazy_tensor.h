// LazyTensor: a handle to a value that may not have been computed yet.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/to_int64.h"
#include "engine/graph/default_device.h"
#include "engine/graph/fill_value.h"
#include "engine/graph/node.h"
#include "engine/tensor/axes.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/slice.h"

namespace caldera {

/// The outcome of an evaluation that may still be running. Copyable; `get` may be called any number of times
/// from any thread.
class EvalFuture {
 public:
  EvalFuture() = default;
  explicit EvalFuture(std::vector<std::shared_ptr<Event>> events) : events_(std::move(events)) {}
  /// True when `get` will not block.
  bool is_ready() const;
  /// Blocks until the values are there. Throws the error the evaluation ended with.
  void get() const;
  void wait() const { get(); }
  /// Asks the evaluation to end early: a loop (scan, while_loop) stops before its next turns, and `get`
  /// throws CancelledError. What has no loop, or is done, is not changed by it. From any thread.
  void cancel() const;

 private:
  std::vector<std::shared_ptr<Event>> events_;
};

/// A cheap, copyable handle to a node of the computation graph. Operations (ops/ops.h) on it build nodes;
/// nothing is computed before `eval`, `eval_async`, `item` or `to_vector`. Handles may be used from any
/// number of threads. A default-constructed handle is empty: it may be assigned to and tested with
/// `defined()`, nothing else.
class LazyTensor {
 public:
  LazyTensor() = default;
  explicit LazyTensor(NodePtr node) : node_(std::move(node)) {}
  /// A scalar constant of rank 0. Its dtype is f32 for floating and i32 for integer arguments; as an operand
  /// next to a tensor it takes that tensor's dtype where the kinds agree (a Python scalar of the Array API).
  /// Throws ValueError for an unsigned integer that std::int64_t does not hold.
  LazyTensor(double value);
  LazyTensor(float value) : LazyTensor(static_cast<double>(value)) {}
  template <std::integral T>
  LazyTensor(T value) : node_(weak_integer(to_int64(value))) {}

  /// Copies host data into a new tensor. Throws ShapeError when the number of elements differs from the
  /// shape's.
  template <class T>
  static LazyTensor from_span(std::span<const T> data, const Shape& shape, Device device);
  template <class T>
  static LazyTensor from_span(std::span<const T> data, const Shape& shape);  // on default_device()
  template <class T>
  static LazyTensor from_vector(const std::vector<T>& data, const Shape& shape);
  template <class T>
  static LazyTensor from_vector(const std::vector<T>& data, const Shape& shape, Device device);
  /// Makes a tensor like from_span, from raw bytes of `dtype`.
  static LazyTensor from_bytes(const void* data, std::size_t bytes, DType dtype, const Shape& shape,
                               Device device);
  static LazyTensor from_slice(std::span<const float> data, const Shape& shape) {
    return from_span(data, shape);
  }

  // zeros(), ones() and full() of ops/core/creation.h by their names in caldera::v1.
  static LazyTensor zeros(const Shape& shape, DType dtype = DType::f32);
  static LazyTensor zeros(const Shape& shape, DType dtype, Device device);
  static LazyTensor ones(const Shape& shape, DType dtype = DType::f32);
  static LazyTensor ones(const Shape& shape, DType dtype, Device device);
  static LazyTensor full(const Shape& shape, FillValue value, DType dtype = DType::f32);
  static LazyTensor full(const Shape& shape, FillValue value, DType dtype, Device device);

  bool defined() const { return static_cast<bool>(node_); }
  const Shape& shape() const { return node().shape(); }
  std::int64_t shape(int axis) const { return shape()[shape().normalize_axis(axis, "shape")]; }
  int rank() const { return shape().rank(); }
  std::int64_t numel() const { return shape().numel(); }
  DType dtype() const { return node().dtype(); }
  Device device() const { return node().device(); }
  std::uint64_t node_id() const { return node().id(); }
  /// Nodes reachable from this one, itself included, that have not been computed.
  std::size_t graph_size() const;

  /// Computes the value and waits for it. Returns *this.
  const LazyTensor& eval() const;
  /// Starts computing and returns at once. Errors surface in the future (and wherever the value is asked
  /// for).
  EvalFuture eval_async() const;
  /// True once the value has been computed without error.
  bool is_evaluated() const;
  /// Returns the value as a leaf that gradients do not pass. Of an evaluated tensor it shares the storage;
  /// otherwise it is stop_gradient(*this).
  LazyTensor detach() const;

  /// Evaluates and copies to the host, row-major. T must be the C++ type of dtype(); throws DTypeError
  /// otherwise.
  template <class T>
  std::vector<T> to_vector() const;
  /// The single element as T (converted). Throws ShapeError if there is more than one.
  template <class T = float>
  T item() const;
  /// Evaluates and copies the bytes to `out`, which has numel() * size_of(dtype()) bytes.
  void copy_to_host(void* out) const;

  /// "LazyTensor(shape=(2, 3), dtype=float32, device=cpu, lazy)"
  std::string to_string() const;

  // ---- Operations as members: those of their names in ops/ops.h, where a member is called as PyTorch calls
  // it under that name. Like those they build nodes and return at once, and throw what those throw.

  LazyTensor pow(const LazyTensor& exponent) const;
  LazyTensor exp() const;
  LazyTensor log() const;
  LazyTensor sqrt() const;
  LazyTensor rsqrt() const;
  LazyTensor reciprocal() const;
  LazyTensor square() const;
  LazyTensor abs() const;
  LazyTensor sin() const;
  LazyTensor cos() const;
  LazyTensor tanh() const;
  LazyTensor sigmoid() const;
  LazyTensor relu() const;
  /// clip(): min(max(x, low), high), where either may be std::nullopt.
  LazyTensor clamp(const std::optional<LazyTensor>& low, const std::optional<LazyTensor>& high = {}) const;

  LazyTensor sum(const Axes& axes = {}, bool keepdims = false) const;
  LazyTensor mean(const Axes& axes = {}, bool keepdims = false) const;
  LazyTensor prod(const Axes& axes = {}, bool keepdims = false) const;
  LazyTensor max(const Axes& axes = {}, bool keepdims = false) const;
  LazyTensor min(const Axes& axes = {}, bool keepdims = false) const;
  /// With correction 0, as the Array API has it; PyTorch's default is 1.
  LazyTensor var(const Axes& axes = {}, double correction = 0, bool keepdims = false) const;
  LazyTensor std(const Axes& axes = {}, double correction = 0, bool keepdims = false) const;
  /// Are refused: keepdims comes after the correction.
  template <std::same_as<bool> Keepdims>
  LazyTensor var(const Axes& axes, Keepdims keepdims) const = delete;
  template <std::same_as<bool> Keepdims>
  LazyTensor std(const Axes& axes, Keepdims keepdims) const = delete;
  LazyTensor any(const Axes& axes = {}, bool keepdims = false) const;
  LazyTensor all(const Axes& axes = {}, bool keepdims = false) const;
  LazyTensor argmax(std::optional<AxisIndex> axis = {}, bool keepdims = false) const;
  LazyTensor argmin(std::optional<AxisIndex> axis = {}, bool keepdims = false) const;
  LazyTensor cumsum(AxisIndex axis = -1) const;

  /// One extent may be -1: it is inferred.
  LazyTensor reshape(const Shape& shape) const;
  /// The axes from `first` to `last` (inclusive) as one.
  LazyTensor flatten(AxisIndex first = 0, AxisIndex last = -1) const;
  /// permute_dims(): the axes in another order.
  LazyTensor permute(const std::vector<int>& axes) const;
  /// Swaps the last two axes, or the two that are named.
  LazyTensor transpose() const;
  LazyTensor transpose(int a, int b) const;
  /// The transpose of a matrix. ShapeError unless there are two axes.
  LazyTensor T() const;  // NOLINT(readability-identifier-naming): as NumPy and PyTorch call it
  /// expand_dims(): a new axis of extent 1.
  LazyTensor unsqueeze(AxisIndex axis) const;
  LazyTensor squeeze(const Axes& axes = {}) const;
  LazyTensor broadcast_to(const Shape& shape) const;

  LazyTensor matmul(const LazyTensor& other) const;
  LazyTensor softmax(AxisIndex axis = -1) const;
  LazyTensor log_softmax(AxisIndex axis = -1) const;
  LazyTensor rms_norm(double eps) const;

  LazyTensor astype(DType dtype) const;
  LazyTensor to(DType dtype) const;
  LazyTensor to(Device device) const;

  /// x[i]: the i-th slice along axis 0, without it; negative indices count from the end. A view. ValueError
  /// for an index out of bounds, ShapeError for a tensor without axes.
  LazyTensor operator[](std::int64_t index) const;
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) LazyTensor operator[](T index) const { return (*this)[to_int64(index)]; }
  /// Neither is an index. NumPy's x[True] is a mask; convert where 0 or 1 is meant.
  template <class T>
  requires(std::floating_point<T> || std::same_as<T, bool>) LazyTensor operator[](T index) const = delete;
  /// x[{2, {1, 5}, kEllipsis}]: indices, slices, an ellipsis and new axes (engine/tensor/slice.h). A view.
  LazyTensor operator[](std::initializer_list<Index> entries) const;
  /// x[indices]: the slices along axis 0 at these indices, integers of any shape, which replaces that axis:
  /// index(). A mask is refused (ValueError): use masked_select(), which takes a size, or where().
  LazyTensor operator[](const LazyTensor& indices) const;

  // The names of caldera::v1 that are no operators or members above.
  LazyTensor add(const LazyTensor& other) const;
  LazyTensor sub(const LazyTensor& other) const;
  LazyTensor mul(const LazyTensor& other) const;
  LazyTensor div(const LazyTensor& other) const;
  LazyTensor mul_scalar(double value) const;
  /// The scaled low-rank product `scale * ((x @ a) @ b)`; a is (in, rank), b is (rank, out).
  LazyTensor lora_fused(const LazyTensor& a, const LazyTensor& b, double scale) const;

  Node& node() const {
    if (!node_) throw Error("this LazyTensor is empty: assign a tensor to it before using it");
    return *node_;
  }

 private:
  static NodeHandle weak_integer(std::int64_t value);

  NodeHandle node_;
};

/// Evaluates several tensors in one go and waits. One plan a device; where the graph crosses devices (`to`),
/// one for each stretch on a device between two crossings.
void eval(std::span<const LazyTensor> outputs);
void eval(std::initializer_list<LazyTensor> outputs);
EvalFuture eval_async(std::span<const LazyTensor> outputs);
EvalFuture eval_async(std::initializer_list<LazyTensor> outputs);

/// The operators are the operations of their names (ops/ops.h): operands broadcast and promote, comparisons
/// are made element by element and give bool. Nothing is computed yet.
LazyTensor operator+(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator-(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator*(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator/(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator-(const LazyTensor& x);
LazyTensor operator==(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator!=(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator<(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator<=(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator>(const LazyTensor& a, const LazyTensor& b);
LazyTensor operator>=(const LazyTensor& a, const LazyTensor& b);

/// `x += y` is `x = x + y`: the handle on the left is bound to a new value, of the type and shape that the
/// sum has. What the handle stood for does not change, nor do copies of the handle, nor nodes that were built
/// from it.
inline LazyTensor& operator+=(LazyTensor& a, const LazyTensor& b) { return a = a + b; }
inline LazyTensor& operator-=(LazyTensor& a, const LazyTensor& b) { return a = a - b; }
inline LazyTensor& operator*=(LazyTensor& a, const LazyTensor& b) { return a = a * b; }
inline LazyTensor& operator/=(LazyTensor& a, const LazyTensor& b) { return a = a / b; }

template <class E>
LazyTensor LazyTensor::from_span(std::span<const E> data, const Shape& shape, Device device) {
  return from_bytes(data.data(), data.size_bytes(), dtype_of<E>(), shape, device);
}
template <class E>
LazyTensor LazyTensor::from_span(std::span<const E> data, const Shape& shape) {
  return from_span(data, shape, default_device());
}
template <class E>
LazyTensor LazyTensor::from_vector(const std::vector<E>& data, const Shape& shape) {
  return from_span(std::span<const E>(data), shape, default_device());
}
template <class E>
LazyTensor LazyTensor::from_vector(const std::vector<E>& data, const Shape& shape, Device device) {
  return from_span(std::span<const E>(data), shape, device);
}

}  // namespace caldera
