#include "ops/build.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>

namespace caldera::ops {
namespace {

const OpDef kScalar{.name = "scalar", .kind = OpClass::scalar, .zero_gradient = true};

LazyTensor make_on(const OpDef& op, const Shape& shape, DType dtype, Device device,
                   std::span<const LazyTensor> inputs, std::span<const std::int64_t> attributes) {
  check_extents(op.name, shape, dtype);
  constexpr std::size_t kFew = 4;
  std::array<NodePtr, kFew> few;
  std::vector<NodePtr> many;
  NodePtr* pointers = few.data();
  if (inputs.size() > kFew) {
    many.resize(inputs.size());
    pointers = many.data();
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) pointers[i] = inputs[i].node_ptr();
  return LazyTensor(
      NodePtr(new Node(op, shape, dtype, device, {pointers, inputs.size()}, Attributes(attributes))));
}

std::string shapes_of(std::span<const LazyTensor> inputs) {
  std::string text;
  for (const LazyTensor& x : inputs) text += (text.empty() ? "" : ", ") + x.shape().to_string();
  return text;
}

bool is_scalar_leaf(const LazyTensor& x) { return x.node().is_scalar_leaf(); }
bool is_weak(const LazyTensor& x) { return is_scalar_leaf(x) && x.node().attributes()[1] != 0; }

LazyTensor make_scalar(std::int64_t bits, DType dtype, bool weak) {
  const std::array<std::int64_t, 2> attributes{bits, weak ? 1 : 0};
  return make_on(kScalar, Shape{}, dtype, Device::cpu(), {}, attributes);
}

}  // namespace

void check_extents(std::string_view op, const Shape& shape, DType dtype) {
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

LazyTensor make(const OpDef& op, const Shape& shape, DType dtype, std::span<const LazyTensor> inputs,
                std::span<const std::int64_t> attributes) {
  Device device = inputs[0].device();
  bool found = false;
  for (const LazyTensor& x : inputs) {
    if (is_scalar_leaf(x)) continue;
    if (found && x.device() != device) {
      throw DeviceError(
          fmt::format("{}: operands are on different devices ({} and {}), shapes {}; move one first", op.name,
                      device.to_string(), x.device().to_string(), shapes_of(inputs)));
    }
    device = x.device();
    found = true;
  }
  if (!found) device = default_device();
  return make_on(op, shape, dtype, device, inputs, attributes);
}

LazyTensor make(const OpDef& op, const Shape& shape, DType dtype, std::initializer_list<LazyTensor> inputs,
                std::span<const std::int64_t> attributes) {
  return make(op, shape, dtype, std::span<const LazyTensor>(inputs.begin(), inputs.size()), attributes);
}

LazyTensor make_source(const OpDef& op, const Shape& shape, DType dtype, Device device,
                       std::initializer_list<LazyTensor> inputs, std::span<const std::int64_t> attributes) {
  return make_on(op, shape, dtype, device, {inputs.begin(), inputs.size()}, attributes);
}

LazyTensor scalar(double value, DType dtype) {
  const auto bits =
      is_floating(dtype) ? std::bit_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  return make_scalar(bits, dtype, false);
}

LazyTensor scalar_i64(std::int64_t value) { return make_scalar(value, DType::i64, false); }

DType dtype_beside(const LazyTensor& x, const LazyTensor& other) {
  if (!is_weak(x) || is_weak(other)) return x.dtype();
  if (is_floating(other.dtype())) return other.dtype();
  if (is_integral(other.dtype()) && is_integral(x.dtype())) return other.dtype();
  return x.dtype();
}

LazyTensor as_operand(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (!is_scalar_leaf(x)) return astype(x, dtype);
  const std::int64_t bits = x.node().attributes()[0];
  if (is_floating(x.dtype()) == is_floating(dtype)) return make_scalar(bits, dtype, false);
  return is_floating(dtype)
             ? scalar(static_cast<double>(bits), dtype)
             : make_scalar(static_cast<std::int64_t>(std::bit_cast<double>(bits)), dtype, false);
}

LazyTensor broadcast_operand(const LazyTensor& x, const Shape& shape) {
  if (is_scalar_leaf(x) || x.shape() == shape) return x;
  return broadcast_to(x, shape);
}

void check_domain(const char* op, ScalarDomain domain, DType dtype) {
  const bool fits = domain == ScalarDomain::any ||
                    (domain == ScalarDomain::numeric && dtype != DType::boolean) ||
                    (domain == ScalarDomain::floating && is_floating(dtype)) ||
                    (domain == ScalarDomain::boolean && dtype == DType::boolean);
  if (fits) return;
  constexpr const char* kWanted[] = {"any", "numeric", "floating", "boolean"};
  throw DTypeError(fmt::format("{}: needs {} operands, got {}; convert with astype()", op,
                               kWanted[static_cast<int>(domain)], name(dtype)));
}

LazyTensor elementwise(const OpDef& op, std::initializer_list<LazyTensor> inputs) {
  const ScalarOpInfo& traits = info(op.scalar);
  const std::string label(op.name);
  std::array<LazyTensor, 2> operands;
  std::size_t count = 0;
  for (const LazyTensor& x : inputs) operands[count++] = x;

  DType dtype = operands[0].dtype();
  Shape shape = operands[0].shape();
  if (count == 2) {
    dtype = promote(dtype_beside(operands[0], operands[1]), dtype_beside(operands[1], operands[0]));
    if (operands[0].shape() != operands[1].shape()) {
      shape = broadcast_shapes(operands[0].shape(), operands[1].shape(), label.c_str());
      check_extents(label, shape, dtype);  // here the message can name the operation, not the broadcast
    }
  }
  if (traits.domain == ScalarDomain::floating && !is_floating(dtype)) dtype = DType::f32;
  check_domain(label.c_str(), traits.domain, dtype);
  for (std::size_t i = 0; i < count; ++i) {
    operands[i] = broadcast_operand(as_operand(operands[i], dtype), shape);
  }
  return make(op, shape, traits.gives_boolean ? DType::boolean : dtype,
              std::span<const LazyTensor>(operands.data(), count));
}

std::vector<int> resolve_axes(const Axes& axes, const Shape& shape, const char* op) {
  std::vector<int> out;
  if (!axes.list()) {
    for (int i = 0; i < shape.rank(); ++i) out.push_back(i);
    return out;
  }
  for (int axis : *axes.list()) out.push_back(shape.normalize_axis(axis, op));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    throw ShapeError(fmt::format("{}: an axis is named twice for shape {}", op, shape.to_string()));
  }
  return out;
}

}  // namespace caldera::ops

namespace caldera {

LazyTensor::LazyTensor(double value)
    : LazyTensor(ops::make_scalar(std::bit_cast<std::int64_t>(value), DType::f32, true)) {}
NodePtr LazyTensor::weak_integer(std::int64_t value) {
  return ops::make_scalar(value, DType::i32, true).node_;
}

}  // namespace caldera
