#include "ops/core/node_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

namespace caldera::ops {
namespace {

const OpDef kScalar{.name = "scalar", .kind = OpClass::scalar, .zero_gradient = true};
const OpDef kAnchored{.name = "number", .kind = OpClass::identity, .vjp = pass_cotangent, .jvp = linear_jvp};

LazyTensor make_on(const OpDef& op, const Shape& shape, DType dtype, Device device,
                   std::span<const LazyTensor> inputs, std::span<const std::int64_t> attributes) {
  check_extents(op.name, shape, dtype);
  constexpr std::size_t kFew = 4;
  std::array<Node*, kFew> few;
  std::vector<Node*> many;
  Node** nodes = few.data();
  if (inputs.size() > kFew) {
    many.resize(inputs.size());
    nodes = many.data();
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) nodes[i] = &inputs[i].node();
  return LazyTensor(Node::make(op, shape, dtype, device, {nodes, inputs.size()}, attributes));
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
          fmt::format("{}: operands are on different devices ({} and {}), shapes {}; move one with to()",
                      op.name, device.to_string(), x.device().to_string(), shapes_of(inputs)));
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

LazyTensor scalar(FillValue value, DType dtype) { return make_scalar(value.bits(dtype), dtype, false); }

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
  return is_floating(dtype) ? scalar(bits, dtype) : scalar(std::bit_cast<double>(bits), dtype);
}

bool holds(DType dtype, const LazyTensor& x) {
  if (!is_scalar_leaf(x) || !is_integral(dtype)) return true;
  const TypeFacts& range = facts(dtype);
  const std::int64_t bits = x.node().attributes()[0];
  if (!is_floating(x.dtype())) return bits >= range.lowest && bits <= range.highest;
  // The fraction is cut off. No double holds the greatest int64; the number above it is one.
  const double value = std::trunc(std::bit_cast<double>(bits));
  return value >= static_cast<double>(range.lowest) && value < static_cast<double>(range.highest) + 1;
}

LazyTensor as_held_operand(std::string_view op, const LazyTensor& x, DType dtype) {
  if (!holds(dtype, x)) {
    const std::int64_t bits = x.node().attributes()[0];
    const std::string number =
        is_floating(x.dtype()) ? fmt::format("{}", std::bit_cast<double>(bits)) : fmt::format("{}", bits);
    throw ValueError(fmt::format("{}: {} is no {}, which is from {} to {}; convert the tensor with astype()",
                                 op, number, name(dtype), facts(dtype).lowest, facts(dtype).highest));
  }
  return as_operand(x, dtype);
}

Device device_of(std::initializer_list<LazyTensor> operands) {
  for (const LazyTensor& x : operands) {
    if (x.defined() && !is_scalar_leaf(x)) return x.device();
  }
  return default_device();
}

LazyTensor anchored(const LazyTensor& x, Device device) {
  return is_scalar_leaf(x) ? make_on(kAnchored, Shape{}, x.dtype(), device, {&x, 1}, {}) : x;
}

std::vector<LazyTensor> as_tensors(std::string_view op, std::span<const LazyTensor> operands) {
  std::vector<LazyTensor> out(operands.begin(), operands.end());
  const auto tensor = std::ranges::find_if_not(operands, is_scalar_leaf);
  if (tensor == operands.end()) return out;
  for (LazyTensor& x : out) x = anchored(as_held_operand(op, x, dtype_beside(x, *tensor)), tensor->device());
  return out;
}

LazyTensor broadcast_operand(const LazyTensor& x, const Shape& shape) {
  if (is_scalar_leaf(x) || x.shape() == shape) return x;
  return broadcast_to(x, shape);
}

void check_domain(std::string_view op, ScalarDomain domain, DType dtype) {
  if (in_domain(domain, dtype)) return;
  constexpr const char* kWanted[] = {"any", "numeric", "floating", "boolean", "integer"};
  throw DTypeError(fmt::format("{}: needs {} operands, got {}; convert with astype()", op,
                               kWanted[static_cast<int>(domain)], name(dtype)));
}

LazyTensor elementwise(const OpDef& op, const LazyTensor& x) {
  const ScalarOpInfo& traits = info(op.scalar);
  const bool cast = traits.domain == ScalarDomain::floating && !is_floating(x.dtype());
  const DType dtype = cast ? DType::f32 : x.dtype();
  check_domain(op.name, traits.domain, dtype);
  const LazyTensor converted = cast ? as_operand(x, dtype) : LazyTensor();
  return make(op, x.shape(), traits.gives_boolean ? DType::boolean : dtype, {cast ? &converted : &x, 1});
}

LazyTensor elementwise(const OpDef& op, const LazyTensor& a, const LazyTensor& b) {
  const ScalarOpInfo& traits = info(op.scalar);
  const Node& x = a.node();
  const Node& y = b.node();
  const bool alike = x.dtype() == y.dtype() && x.shape() == y.shape() && x.device() == y.device() &&
                     !x.is_scalar_leaf() && !y.is_scalar_leaf();
  if (alike && in_domain(traits.domain, x.dtype())) {
    // Nothing to convert, and extents that some tensor has already.
    const std::array<Node*, 2> nodes{&a.node(), &b.node()};
    return LazyTensor(
        Node::make(op, x.shape(), traits.gives_boolean ? DType::boolean : x.dtype(), x.device(), nodes));
  }
  const std::array<const LazyTensor*, 2> given{&a, &b};
  DType dtype = promote(dtype_beside(a, b), dtype_beside(b, a));
  Shape shape = x.shape();
  if (x.shape() != y.shape()) {
    shape = broadcast_shapes(x.shape(), y.shape(), std::string(op.name).c_str());
    check_extents(op.name, shape, dtype);  // here the message can name the operation, not the broadcast
  }
  if (traits.domain == ScalarDomain::floating && !is_floating(dtype)) dtype = DType::f32;
  // Numbers beyond a type can be compared with its elements, in a type that holds both.
  if (traits.gives_boolean && !(holds(dtype, a) && holds(dtype, b))) dtype = DType::i64;
  check_domain(op.name, traits.domain, dtype);
  std::array<LazyTensor, 2> operands;
  for (std::size_t i = 0; i < 2; ++i)
    operands[i] = broadcast_operand(as_held_operand(op.name, *given[i], dtype), shape);
  return make(op, shape, traits.gives_boolean ? DType::boolean : dtype,
              std::span<const LazyTensor>(operands));
}

void linear_jvp(JvpContext& c) {
  std::vector<LazyTensor> inputs(c.inputs.begin(), c.inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (c.tangents[i].defined())
      inputs[i] = c.tangents[i];
    else if (is_floating(inputs[i].dtype()))
      inputs[i] = zeros_like(inputs[i]);
  }
  const Node& node = c.output.node();
  c.tangent = make(node.op(), node.shape(), node.dtype(), inputs, node.attributes().values());
}

void pass_cotangent(VjpContext& c) { c.grads[0] = c.cotangent; }

Dims resolve_axes(const Axes& axes, const Shape& shape, std::string_view op) {
  std::array<bool, kMaxRank> named{};
  if (axes.are_all()) named.fill(true);
  for (int axis : axes.are_all() ? std::span<const int>() : axes.list()) {
    bool& is_named = named[static_cast<std::size_t>(shape.normalize_axis(axis, std::string(op).c_str()))];
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

Axes::Axes(std::span<const int> axes) : count_(static_cast<int>(axes.size())) {
  if (axes.size() > axes_.size()) {
    throw ShapeError(fmt::format("{} axes are named, a tensor has at most {}", axes.size(), kMaxRank));
  }
  std::copy(axes.begin(), axes.end(), axes_.begin());
}

LazyTensor::LazyTensor(double value)
    : LazyTensor(ops::make_scalar(std::bit_cast<std::int64_t>(value), DType::f32, true)) {}
NodePtr LazyTensor::weak_integer(std::int64_t value) {
  return ops::make_scalar(value, DType::i32, true).node_;
}

}  // namespace caldera
