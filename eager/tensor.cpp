#include "eager/tensor.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>

#include "engine/graph/histories.h"
#include "engine/graph/transfer.h"
#include "engine/tensor/dispatch.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/views.h"
#include "ops/nn/lora.h"
#include "ops/nn/normalization.h"
#include "ops/nn/softmax.h"
#include "ops/random/uniform_normal.h"

namespace caldera::v1 {

/// The value, and its copy on the host once an element has been asked for.
struct Tensor::State {
  explicit State(LazyTensor tensor) : value(std::move(tensor)) {}
  LazyTensor value;
  std::once_flag copied;
  std::vector<std::byte> host;
};

namespace {

/// An element as a number of type N.
template <class N>
N read(DType type, const std::byte* from) {
  return dispatch(type, [&]<class T>() {
    Stored<T> element{};
    std::memcpy(&element, from, sizeof(element));
    return static_cast<N>(to_number(element));
  });
}

}  // namespace

Tensor Tensor::of_call(const LazyTensor& result) {
  return Tensor(KeepHistories::is_active() ? result : result.detach());
}

Tensor Tensor::computed(const LazyTensor& result, std::initializer_list<const Tensor*> operands) {
  result.eval();
  for (const Tensor* operand : operands) {
    const Node& node = operand->lazy().node();
    if (node.is_traced() || node.is_cut() || node.has_kept_history()) return Tensor(result);
  }
  return Tensor(result.detach());
}

Tensor::Tensor(const LazyTensor& lazy) : state_(std::make_shared<State>(lazy.eval())) {}

const LazyTensor& Tensor::lazy() const {
  if (!state_) throw Error("this Tensor is empty: assign a tensor to it before using it");
  return state_->value;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, const Device& device) {
  return computed(LazyTensor::zeros(shape, dtype, device), {});
}
Tensor Tensor::ones(const Shape& shape, DType dtype, const Device& device) {
  return computed(LazyTensor::ones(shape, dtype, device), {});
}
Tensor Tensor::full(const Shape& shape, double value, DType dtype, const Device& device) {
  return computed(LazyTensor::full(shape, value, dtype, device), {});
}
Tensor Tensor::randn(const Shape& shape, std::uint64_t seed, DType dtype, const Device& device) {
  return computed(random_normal(shape, seed, dtype, device), {});
}

std::string Tensor::to_string() const {
  return fmt::format("Tensor(shape={}, dtype={}, device={})", shape().to_string(), name(dtype()),
                     lazy().device().to_string());
}

// ---- elements
// -------------------------------------------------------------------------------------------------------

const std::byte* Tensor::element(std::span<const std::int64_t> index) const {
  const Shape& extents = shape();
  if (static_cast<int>(index.size()) != extents.rank())
    throw ShapeError(fmt::format("at: {} indices for a tensor of shape {}; give one for every axis",
                                 index.size(), extents.to_string()));
  const Dims strides = extents.strides();
  std::int64_t offset = 0;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    std::int64_t i = index[static_cast<std::size_t>(axis)];
    if (i < -extents[axis] || i >= extents[axis])
      throw ShapeError(
          fmt::format("at: index {} is out of bounds for axis {} with size {}", i, axis, extents[axis]));
    if (i < 0) i += extents[axis];
    offset += i * strides[axis];
  }
  const std::size_t width = size_of(dtype());
  std::call_once(state_->copied, [&] {
    std::vector<std::byte> copy(static_cast<std::size_t>(numel()) * width);
    state_->value.copy_to_host(copy.data());
    state_->host = std::move(copy);
  });
  return state_->host.data() + static_cast<std::size_t>(offset) * width;
}

double Tensor::real_at(std::span<const std::int64_t> index) const {
  return read<double>(dtype(), element(index));
}

std::int64_t Tensor::integer_at(std::span<const std::int64_t> index) const {
  return read<std::int64_t>(dtype(), element(index));
}

// ---- operations
// -----------------------------------------------------------------------------------------------------

Tensor Tensor::add(const Tensor& other) const {
  return computed(caldera::add(lazy(), other.lazy()), {this, &other});
}
Tensor Tensor::sub(const Tensor& other) const {
  return computed(subtract(lazy(), other.lazy()), {this, &other});
}
Tensor Tensor::mul(const Tensor& other) const {
  return computed(multiply(lazy(), other.lazy()), {this, &other});
}
Tensor Tensor::div(const Tensor& other) const {
  return computed(divide(lazy(), other.lazy()), {this, &other});
}
Tensor Tensor::matmul(const Tensor& other) const {
  return computed(lazy().matmul(other.lazy()), {this, &other});
}
Tensor Tensor::reshape(const Shape& shape) const { return computed(caldera::reshape(lazy(), shape), {this}); }
Tensor Tensor::transpose() const { return computed(caldera::transpose(lazy()), {this}); }
Tensor Tensor::astype(DType dtype) const { return computed(caldera::astype(lazy(), dtype), {this}); }
Tensor Tensor::sum() const { return computed(lazy().sum(), {this}); }
Tensor Tensor::mean() const { return computed(lazy().mean(), {this}); }

Tensor Tensor::to_device(const Device& device) const {
  if (lazy().device() == device) return *this;
  return computed(to(lazy(), device), {this});
}

Tensor Tensor::softmax_stable() const { return computed(caldera::softmax(lazy(), -1), {this}); }
Tensor Tensor::layer_norm(double eps) const { return computed(caldera::layer_norm(lazy(), eps), {this}); }
Tensor Tensor::rms_norm(double eps) const { return computed(caldera::rms_norm(lazy(), eps), {this}); }
Tensor Tensor::lora_forward_fused(const Tensor& a, const Tensor& b, double scaling) const {
  return computed(lora_delta(lazy(), a.lazy(), b.lazy(), scaling), {this, &a, &b});
}

Tensor operator+(const Tensor& a, const Scalar& b) { return Tensor::computed(add(a.lazy(), b.lazy()), {&a}); }
Tensor operator-(const Tensor& a, const Scalar& b) {
  return Tensor::computed(subtract(a.lazy(), b.lazy()), {&a});
}
Tensor operator*(const Tensor& a, const Scalar& b) {
  return Tensor::computed(multiply(a.lazy(), b.lazy()), {&a});
}
Tensor operator/(const Tensor& a, const Scalar& b) {
  return Tensor::computed(divide(a.lazy(), b.lazy()), {&a});
}
Tensor operator+(const Scalar& a, const Tensor& b) { return Tensor::computed(add(a.lazy(), b.lazy()), {&b}); }
Tensor operator-(const Scalar& a, const Tensor& b) {
  return Tensor::computed(subtract(a.lazy(), b.lazy()), {&b});
}
Tensor operator*(const Scalar& a, const Tensor& b) {
  return Tensor::computed(multiply(a.lazy(), b.lazy()), {&b});
}
Tensor operator/(const Scalar& a, const Tensor& b) {
  return Tensor::computed(divide(a.lazy(), b.lazy()), {&b});
}
Tensor operator-(const Tensor& x) { return Tensor::computed(negative(x.lazy()), {&x}); }

}  // namespace caldera::v1
