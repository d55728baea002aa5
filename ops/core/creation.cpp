// Tensors that come from nothing but a shape: constants, coordinates, random numbers.
#include <fmt/core.h>

#include <array>
#include <limits>

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

const OpDef kIota{.name = "iota", .kind = OpClass::index, .scalar = ScalarOp::index, .zero_gradient = true};
const OpDef kUniform{.name = "random_uniform",
                     .kind = OpClass::random,
                     .scalar = ScalarOp::philox_uniform,
                     .zero_gradient = true};
const OpDef kNormal{.name = "random_normal",
                    .kind = OpClass::random,
                    .scalar = ScalarOp::philox_normal,
                    .zero_gradient = true};

void stop_is_zero(VjpContext&) {}
const OpDef kFull{.name = "full", .kind = OpClass::identity, .vjp = stop_is_zero, .zero_gradient = true};
const OpDef kStopGradient{
    .name = "stop_gradient", .kind = OpClass::identity, .vjp = stop_is_zero, .zero_gradient = true};

/// Kernels count elements of these in 32 bits, on every device alike.
void check_countable(const Shape& shape, const char* op) {
  ops::check_extents(op, shape, DType::i32);
  if (shape.numel() > std::numeric_limits<std::int32_t>::max()) {
    throw ShapeError(fmt::format("{}: shape {} has more than 2^31 - 1 elements", op, shape.to_string()));
  }
}

LazyTensor random(const OpDef& op, const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  check_countable(shape, std::string(op.name).c_str());
  ops::check_domain(std::string(op.name).c_str(), ScalarDomain::floating, dtype);
  return ops::make_source(op, shape, dtype, device, {ops::scalar(seed, DType::i64)});
}

}  // namespace

LazyTensor LazyTensor::full(const Shape& shape, FillValue value, DType dtype, Device device) {
  ops::check_extents("full", shape, dtype);
  // Through an identity, so that the result has a device and is no bare scalar leaf even at rank 0.
  const LazyTensor value_node = ops::as_held_operand("full", ops::scalar(value, dtype), dtype);
  const LazyTensor anchored = ops::make_source(kFull, Shape{}, dtype, device, {value_node});
  return broadcast_to(anchored, shape);
}
LazyTensor LazyTensor::full(const Shape& shape, FillValue value, DType dtype) {
  return full(shape, value, dtype, default_device());
}
LazyTensor LazyTensor::zeros(const Shape& shape, DType dtype, Device device) {
  ops::check_extents("zeros", shape, dtype);
  return full(shape, 0, dtype, device);
}
LazyTensor LazyTensor::zeros(const Shape& shape, DType dtype) {
  return zeros(shape, dtype, default_device());
}
LazyTensor LazyTensor::ones(const Shape& shape, DType dtype, Device device) {
  ops::check_extents("ones", shape, dtype);
  return full(shape, 1, dtype, device);
}
LazyTensor LazyTensor::ones(const Shape& shape, DType dtype) { return ones(shape, dtype, default_device()); }

LazyTensor zeros_like(const LazyTensor& x) { return zeros_like(x, x.dtype()); }
LazyTensor zeros_like(const LazyTensor& x, DType dtype) {
  return LazyTensor::zeros(x.shape(), dtype, x.device());
}
LazyTensor ones_like(const LazyTensor& x) { return ones_like(x, x.dtype()); }
LazyTensor ones_like(const LazyTensor& x, DType dtype) {
  return LazyTensor::ones(x.shape(), dtype, x.device());
}
LazyTensor full_like(const LazyTensor& x, FillValue value) { return full_like(x, value, x.dtype()); }
LazyTensor full_like(const LazyTensor& x, FillValue value, DType dtype) {
  return LazyTensor::full(x.shape(), value, dtype, x.device());
}

LazyTensor iota(const Shape& shape, int axis, DType dtype, Device device) {
  const int at = shape.normalize_axis(axis, "iota");
  check_countable(shape, "iota");
  std::array<std::int64_t, kMaxRank> strides{};
  strides[static_cast<std::size_t>(at)] = 1;
  return astype(ops::make_source(kIota, shape, DType::i32, device, {},
                                 {strides.data(), static_cast<std::size_t>(shape.rank())}),
                dtype);
}

LazyTensor arange(std::int64_t n, DType dtype, Device device) {
  ops::check_extents("arange", Shape{n}, dtype);
  ops::check_domain("arange", ScalarDomain::numeric, dtype);
  if (is_integral(dtype) && n - 1 > facts(dtype).highest)
    throw ValueError(fmt::format("arange: 0 to {} are beyond {}, whose highest number is {}", n - 1,
                                 name(dtype), facts(dtype).highest));
  return iota(Shape{n}, 0, dtype, device);
}
LazyTensor arange(std::int64_t n, DType dtype) { return arange(n, dtype, default_device()); }

LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  if (!is_half(dtype)) return random(kUniform, shape, seed, dtype, device);
  // As many bits as the type holds: rounded, the largest numbers would be 1.
  const double steps = dtype == DType::f16 ? 2048 : 256;
  const LazyTensor wide = random(kUniform, shape, seed, DType::f32, device);
  return astype(floor(wide * steps) / steps, dtype);
}
LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_uniform(shape, seed, dtype, default_device());
}
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  return random(kNormal, shape, seed, dtype, device);
}
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_normal(shape, seed, dtype, default_device());
}

LazyTensor stop_gradient(const LazyTensor& x) { return ops::make(kStopGradient, x.shape(), x.dtype(), {x}); }

}  // namespace caldera
