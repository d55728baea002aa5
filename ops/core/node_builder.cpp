#include "ops/core/node_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>

#include "engine/graph/tracing/tracing.h"
#include "ops/core/checked_shape.h"

namespace caldera::ops {
namespace {

const OpDef kScalar{.name = "scalar", .kind = OpClass::scalar, .zero_gradient = true};
const OpDef kAnchored{.name = "number", .kind = OpClass::identity, .vjp = pass_cotangent, .jvp = linear_jvp};

bool is_weak(const LazyTensor& x) { return is_scalar_leaf(x) && x.node().attributes()[1] != 0; }

LazyTensor make_scalar(std::int64_t bits, DType dtype, bool weak) {
  const std::array<std::int64_t, 2> attributes{bits, weak ? 1 : 0};
  return make_checked_on(kScalar, InternedShape(), dtype, Device::cpu(), {}, attributes);
}

}  // namespace

void check_extents(std::string_view op, const Shape& shape, DType dtype) {
  if (static_cast<std::size_t>(dtype) >= kDTypeCount)
    throw DTypeError(
        fmt::format("{}: DType({}) is none of the {} types", op, static_cast<int>(dtype), kDTypeCount));
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  bool overflow = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw ShapeError(fmt::format("{}: shape {} has a negative extent", op, shape.to_string()));
    }
    overflow = overflow || __builtin_mul_overflow(bytes, extent == 0 ? 1 : extent, &bytes);
  }
  if (overflow) {
    throw ShapeError(fmt::format("{}: shape {} of {} has more bytes than can be addressed", op,
                                 shape.to_string(), name(dtype)));
  }
}

void check_countable(const Shape& shape, const char* op) {
  check_extents(op, shape, DType::i32);
  if (shape.numel() > std::numeric_limits<std::int32_t>::max()) {
    throw ShapeError(fmt::format("{}: shape {} has more than 2^31 - 1 elements", op, shape.to_string()));
  }
}

LazyTensor make(const OpDef& op, const Shape& shape, DType dtype, std::span<const LazyTensor> inputs,
                std::span<const std::int64_t> attributes) {
  const Device device = common_device(op, inputs);
  check_extents(op.name, shape, dtype);
  return make_checked_on(op, shape, dtype, device, inputs, attributes);
}

LazyTensor make(const OpDef& op, const Shape& shape, DType dtype, std::initializer_list<LazyTensor> inputs,
                std::span<const std::int64_t> attributes) {
  return make(op, shape, dtype, std::span<const LazyTensor>(inputs.begin(), inputs.size()), attributes);
}

LazyTensor make_source(const OpDef& op, const Shape& shape, DType dtype, Device device,
                       std::initializer_list<LazyTensor> inputs, std::span<const std::int64_t> attributes) {
  check_extents(op.name, shape, dtype);
  return make_checked_on(op, shape, dtype, device, {inputs.begin(), inputs.size()}, attributes);
}

LazyTensor scalar(FillValue value, DType dtype) { return scalar_of_bits(value.bits(dtype), dtype); }

LazyTensor scalar_of_bits(std::int64_t bits, DType dtype) { return make_scalar(bits, dtype, false); }

FillValue number_of(const LazyTensor& x) {
  note_number_read(x.node());
  return value_of_number(x.node());
}

DType dtype_beside(const LazyTensor& x, const LazyTensor& other) {
  if (!is_weak(x) || is_weak(other)) return x.dtype();
  if (is_floating(other.dtype())) return other.dtype();
  if (is_integral(other.dtype()) && is_integral(x.dtype())) return other.dtype();
  return x.dtype();
}

bool holds(DType dtype, const LazyTensor& x) {
  return !is_scalar_leaf(x) || is_argument_number(x.node()) || number_of(x).fits(dtype);
}

Device device_of(std::initializer_list<LazyTensor> operands) {
  for (const LazyTensor& x : operands) {
    if (x.defined() && !is_scalar_leaf(x)) return x.device();
  }
  return default_device();
}

LazyTensor anchored(const LazyTensor& x, Device device) {
  return is_scalar_leaf(x) ? make_checked_on(kAnchored, InternedShape(), x.dtype(), device, {&x, 1}, {}) : x;
}

void check_domain(std::string_view op, ScalarDomain domain, DType dtype) {
  if (in_domain(domain, dtype)) return;
  constexpr const char* kWanted[] = {"any", "numeric", "floating", "boolean", "integer"};
  throw DTypeError(fmt::format("{}: needs {} operands, got {}; convert with astype()", op,
                               kWanted[static_cast<int>(domain)], name(dtype)));
}

void linear_jvp(JvpContext& c) {
  std::vector<LazyTensor> inputs(c.inputs.begin(), c.inputs.end());
  inputs[0] = c.tangents[0];
  const Node& node = c.output.node();
  c.tangent = make(node.op(), node.shape(), node.dtype(), inputs, node.attributes().values());
}

void pass_cotangent(VjpContext& c) { c.grads[0] = c.cotangent; }

Dims resolve_axes(const Axes& axes, const Shape& shape, std::string_view op) {
  std::array<bool, kMaxRank> named{};
  if (axes.are_all()) named.fill(true);
  for (int axis : axes.are_all() ? std::span<const int>() : axes.list()) {
    // A tensor without axes is taken for one of one axis.
    const int rank = shape.rank() == 0 ? 1 : shape.rank();
    int place = axis < 0 ? axis + rank : axis;
    if (place < 0 || place >= rank) place = shape.normalize_axis(axis, std::string(op).c_str());  // throws
    bool& is_named = named[static_cast<std::size_t>(place)];
    if (is_named) {
      throw ShapeError(fmt::format("{}: an axis is named twice for shape {}", op, shape.to_string()));
    }
    is_named = true;
  }
  Dims out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (named[static_cast<std::size_t>(axis)]) out.push_back(axis);
  }
  return out;
}

}  // namespace caldera::ops

namespace caldera {

LazyTensor::LazyTensor(double value)
    : LazyTensor(ops::make_scalar(std::bit_cast<std::int64_t>(value), DType::f32, true)) {}
NodeHandle LazyTensor::weak_integer(std::int64_t value) {
  return ops::make_scalar(value, DType::i32, true).node_;
}

}  // namespace caldera
