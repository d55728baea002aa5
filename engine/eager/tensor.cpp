#include "engine/eager/tensor.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>

#include "ops/ops.h"

namespace caldera::v1 {

/// The value, and its copy on the host once an element has been asked for.
struct Tensor::State {
  explicit State(LazyTensor tensor) : value(std::move(tensor)) {}
  LazyTensor value;
  std::once_flag copied;
  std::vector<std::byte> host;
};

namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

Tensor::Tensor(const LazyTensor& lazy) : state_(std::make_shared<State>(lazy.eval())) {}

const LazyTensor& Tensor::lazy() const {
  if (!state_) throw Error("this Tensor is empty: assign a tensor to it before using it");
  return state_->value;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, const Device& device) {
  return Tensor(LazyTensor::zeros(shape, dtype, device));
}
Tensor Tensor::ones(const Shape& shape, DType dtype, const Device& device) {
  return Tensor(LazyTensor::ones(shape, dtype, device));
}
Tensor Tensor::full(const Shape& shape, double value, DType dtype, const Device& device) {
  return Tensor(LazyTensor::full(shape, value, dtype, device));
}
Tensor Tensor::randn(const Shape& shape, std::uint64_t seed, DType dtype, const Device& device) {
  return Tensor(random_normal(shape, seed, dtype, device));
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
          fmt::format("at: index {} is outside axis {} of shape {}", i, axis, extents.to_string()));
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
  const std::byte* from = element(index);
  switch (dtype()) {
    case DType::f16:
      return static_cast<double>(to_float(load<Half>(from)));
    case DType::bf16:
      return static_cast<double>(to_float(load<BFloat16>(from)));
    case DType::f32:
      return static_cast<double>(load<float>(from));
    case DType::f64:
      return load<double>(from);
    default:
      return static_cast<double>(integer_at(index));
  }
}

std::int64_t Tensor::integer_at(std::span<const std::int64_t> index) const {
  const std::byte* from = element(index);
  switch (dtype()) {
    case DType::boolean:
    case DType::u8:
      return load<std::uint8_t>(from);
    case DType::i32:
      return load<std::int32_t>(from);
    case DType::i64:
      return load<std::int64_t>(from);
    default:
      return static_cast<std::int64_t>(real_at(index));
  }
}

// ---- operations
// -----------------------------------------------------------------------------------------------------

Tensor Tensor::add(const Tensor& other) const { return Tensor(caldera::add(lazy(), other.lazy())); }
Tensor Tensor::sub(const Tensor& other) const { return Tensor(subtract(lazy(), other.lazy())); }
Tensor Tensor::mul(const Tensor& other) const { return Tensor(multiply(lazy(), other.lazy())); }
Tensor Tensor::div(const Tensor& other) const { return Tensor(divide(lazy(), other.lazy())); }
Tensor Tensor::matmul(const Tensor& other) const { return Tensor(caldera::matmul(lazy(), other.lazy())); }
Tensor Tensor::reshape(const Shape& shape) const { return Tensor(caldera::reshape(lazy(), shape)); }
Tensor Tensor::transpose() const { return Tensor(caldera::transpose(lazy())); }
Tensor Tensor::astype(DType dtype) const { return Tensor(caldera::astype(lazy(), dtype)); }
Tensor Tensor::sum() const { return Tensor(caldera::sum(lazy())); }
Tensor Tensor::mean() const { return Tensor(caldera::mean(lazy())); }

Tensor Tensor::to_device(const Device& device) const {
  if (lazy().device() == device) return *this;
  std::vector<std::byte> bytes(static_cast<std::size_t>(numel()) * size_of(dtype()));
  lazy().copy_to_host(bytes.data());
  return Tensor(LazyTensor::from_bytes(bytes.data(), bytes.size(), dtype(), shape(), device));
}

Tensor Tensor::softmax_stable() const { return Tensor(caldera::softmax(lazy(), -1)); }
Tensor Tensor::layer_norm(double eps) const { return Tensor(caldera::layer_norm(lazy(), eps)); }
Tensor Tensor::rms_norm(double eps) const { return Tensor(caldera::rms_norm(lazy(), eps)); }
Tensor Tensor::lora_forward_fused(const Tensor& a, const Tensor& b, double scaling) const {
  return Tensor(lora_delta(lazy(), a.lazy(), b.lazy(), scaling));
}

Tensor operator+(const Tensor& a, const Scalar& b) { return Tensor(add(a.lazy(), b.lazy())); }
Tensor operator-(const Tensor& a, const Scalar& b) { return Tensor(subtract(a.lazy(), b.lazy())); }
Tensor operator*(const Tensor& a, const Scalar& b) { return Tensor(multiply(a.lazy(), b.lazy())); }
Tensor operator/(const Tensor& a, const Scalar& b) { return Tensor(divide(a.lazy(), b.lazy())); }
Tensor operator+(const Scalar& a, const Tensor& b) { return Tensor(add(a.lazy(), b.lazy())); }
Tensor operator-(const Scalar& a, const Tensor& b) { return Tensor(subtract(a.lazy(), b.lazy())); }
Tensor operator*(const Scalar& a, const Tensor& b) { return Tensor(multiply(a.lazy(), b.lazy())); }
Tensor operator/(const Scalar& a, const Tensor& b) { return Tensor(divide(a.lazy(), b.lazy())); }
Tensor operator-(const Tensor& x) { return Tensor(negative(x.lazy())); }

}  // namespace caldera::v1
