#include "ops/core/creation.h"

#include <array>
#include <span>

#include "engine/graph/data_leaf.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/checked_shape.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"

namespace caldera {
namespace {

const OpDef kIota{.name = "iota", .kind = OpClass::index, .scalar = ScalarOp::index, .zero_gradient = true};
void stop_is_zero(VjpContext&) {}
const OpDef kFull{.name = "full", .kind = OpClass::identity, .vjp = stop_is_zero, .zero_gradient = true};
/// Ones are always ones: what multiplies by them, as gradients do at their beginning, need not be computed.
const OpDef kOnes{.name = "ones",
                  .kind = OpClass::identity,
                  .scalar = ScalarOp::scalar,
                  .vjp = stop_is_zero,
                  .zero_gradient = true};
const OpDef kStopGradient{
    .name = "stop_gradient", .kind = OpClass::identity, .vjp = stop_is_zero, .zero_gradient = true};

/// Through an identity, so that the result has a device and is no bare scalar leaf even at rank 0.
LazyTensor filled(const OpDef& op, const Shape& shape, FillValue value, DType dtype, Device device,
                  std::span<const std::int64_t> attributes) {
  ops::check_extents(op.name, shape, dtype);
  const LazyTensor value_node = ops::held_scalar(op.name, value, dtype);
  return broadcast_to(ops::make_source(op, Shape{}, dtype, device, {value_node}, attributes), shape);
}

}  // namespace

LazyTensor full(const Shape& shape, FillValue value, DType dtype, Device device) {
  return filled(kFull, shape, value, dtype, device, {});
}
LazyTensor full(const Shape& shape, FillValue value, DType dtype) {
  return full(shape, value, dtype, default_device());
}
LazyTensor zeros(const Shape& shape, DType dtype, Device device) {
  ops::check_extents("zeros", shape, dtype);
  return full(shape, 0, dtype, device);
}
LazyTensor zeros(const Shape& shape, DType dtype) { return zeros(shape, dtype, default_device()); }
LazyTensor ones(const Shape& shape, DType dtype, Device device) {
  static constexpr std::array<std::int64_t, 1> kOne{1};
  return filled(kOnes, shape, 1, dtype, device, kOne);
}
LazyTensor ones(const Shape& shape, DType dtype) { return ones(shape, dtype, default_device()); }

LazyTensor LazyTensor::full(const Shape& shape, FillValue value, DType dtype, Device device) {
  return caldera::full(shape, value, dtype, device);
}
LazyTensor LazyTensor::full(const Shape& shape, FillValue value, DType dtype) {
  return caldera::full(shape, value, dtype);
}
LazyTensor LazyTensor::zeros(const Shape& shape, DType dtype, Device device) {
  return caldera::zeros(shape, dtype, device);
}
LazyTensor LazyTensor::zeros(const Shape& shape, DType dtype) { return caldera::zeros(shape, dtype); }
LazyTensor LazyTensor::ones(const Shape& shape, DType dtype, Device device) {
  return caldera::ones(shape, dtype, device);
}
LazyTensor LazyTensor::ones(const Shape& shape, DType dtype) { return caldera::ones(shape, dtype); }

LazyTensor zeros_like(const LazyTensor& x) { return zeros_like(x, x.dtype()); }
LazyTensor zeros_like(const LazyTensor& x, DType dtype) { return zeros(x.shape(), dtype, x.device()); }
LazyTensor ones_like(const LazyTensor& x) { return ones_like(x, x.dtype()); }
LazyTensor ones_like(const LazyTensor& x, DType dtype) { return ones(x.shape(), dtype, x.device()); }
LazyTensor full_like(const LazyTensor& x, FillValue value) { return full_like(x, value, x.dtype()); }
LazyTensor full_like(const LazyTensor& x, FillValue value, DType dtype) {
  return full(x.shape(), value, dtype, x.device());
}

LazyTensor empty(const Shape& shape, DType dtype, std::optional<Device> device) {
  ops::check_extents("empty", shape, dtype);
  return zeros(shape, dtype, device ? *device : default_device());
}
LazyTensor empty_like(const LazyTensor& x, std::optional<DType> dtype) {
  return zeros_like(x, dtype.value_or(x.dtype()));
}

LazyTensor iota(const Shape& shape, AxisIndex axis, DType dtype, Device device) {
  const int at = shape.normalize_axis(axis, "iota");
  ops::check_countable(shape, "iota");
  std::array<std::int64_t, kMaxRank> strides{};
  strides[static_cast<std::size_t>(at)] = 1;
  return astype(ops::make_source(kIota, shape, DType::i32, device, {},
                                 {strides.data(), static_cast<std::size_t>(shape.rank())}),
                dtype);
}

LazyTensor stop_gradient(const LazyTensor& x) {
  return ops::make_checked(kStopGradient, x.node().interned_shape(), x.dtype(), x);
}

LazyTensor LazyTensor::detach() const {
  const Node& n = node();
  if (std::optional<Value> value = value_of(n))
    return data_leaf(n.shape(), n.dtype(), n.device(), std::move(*value),
                     &n.op() == &kDataOp ? kDataOp : kComputedOp);
  return stop_gradient(*this);
}

}  // namespace caldera
