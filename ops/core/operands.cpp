#include "ops/core/operands.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "engine/graph/tracing/tracing.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/checked_shape.h"
#include "ops/core/node_builder.h"

namespace caldera::ops {
namespace {

void check_fits(std::string_view op, FillValue value, DType dtype, std::string_view advice) {
  if (value.fits(dtype)) return;
  const std::string number =
      value.is_integer() ? fmt::format("{}", value.integer()) : fmt::format("{}", value.real());
  throw ValueError(fmt::format("{}: {} is no {}, which is from {} to {}; {}", op, number, name(dtype),
                               facts(dtype).lowest, facts(dtype).highest, advice));
}

}  // namespace

LazyTensor as_operand(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (!is_scalar_leaf(x)) return astype(x, dtype);
  if (is_argument_number(x.node())) return LazyTensor(converted_argument(x.node(), dtype));
  return scalar(number_of(x), dtype);
}

LazyTensor as_held_operand(std::string_view op, const LazyTensor& x, DType dtype) {
  if (is_scalar_leaf(x) && !holds(dtype, x))
    check_fits(op, number_of(x), dtype, "convert the tensor with astype()");
  return as_operand(x, dtype);
}

LazyTensor held_scalar(std::string_view op, FillValue value, DType dtype) {
  check_fits(op, value, dtype, "name a dtype that holds it");
  return scalar(value, dtype);
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

LazyTensor elementwise(const OpDef& op, const LazyTensor& x) {
  const ScalarOpInfo& traits = info(op.scalar);
  const bool cast = traits.domain == ScalarDomain::floating && !is_floating(x.dtype());
  const DType dtype = cast ? DType::f32 : x.dtype();
  check_domain(op.name, traits.domain, dtype);
  const LazyTensor converted = cast ? as_operand(x, dtype) : LazyTensor();
  return make_checked(op, x.node().interned_shape(), traits.gives_boolean ? DType::boolean : dtype,
                      cast ? converted : x);
}

namespace {

/// The shape of both operands; that of one of them, as it mostly is, is found without a look-up.
InternedShape common_shape(const OpDef& op, const Node& a, const Node& b) {
  if (a.interned_shape() == b.interned_shape()) return a.interned_shape();
  const Shape both = broadcast_shapes(a.shape(), b.shape(), std::string(op.name).c_str());
  if (both == a.shape()) return a.interned_shape();
  if (both == b.shape()) return b.interned_shape();
  return both;
}

Device device_of_both(const OpDef& op, const LazyTensor& a, const LazyTensor& b) {
  if (is_scalar_leaf(a)) return is_scalar_leaf(b) ? default_device() : b.device();
  if (is_scalar_leaf(b) || a.device() == b.device()) return a.device();
  const std::array both{a, b};
  return common_device(op, both);  // throws
}

/// The operand of an operation on elements of this type and shape: `x` itself, or `made` of it.
const LazyTensor& fitted(const OpDef& op, const LazyTensor& x, DType dtype, const InternedShape& shape,
                         LazyTensor& made) {
  const bool is_number = is_scalar_leaf(x);
  const LazyTensor* fitting = &x;
  if (is_number || x.dtype() != dtype) fitting = &(made = as_held_operand(op.name, x, dtype));
  if (!is_number && x.node().interned_shape() != shape) fitting = &(made = broadcast_to(*fitting, shape));
  return *fitting;
}

/// Of operands that may have to be converted or broadcast.
LazyTensor elementwise_of_unlike(const OpDef& op, const ScalarOpInfo& traits, const LazyTensor& a,
                                 const LazyTensor& b) {
  DType dtype = a.dtype() == b.dtype() ? a.dtype() : promote(dtype_beside(a, b), dtype_beside(b, a));
  const InternedShape shape = common_shape(op, a.node(), b.node());
  if (traits.domain == ScalarDomain::floating && !is_floating(dtype)) dtype = DType::f32;
  // Numbers beyond a type can be compared with its elements, in a type that holds both.
  if (traits.gives_boolean && !(holds(dtype, a) && holds(dtype, b))) dtype = DType::i64;
  check_extents(op.name, shape, dtype);  // here the message can name the operation, not a cast or broadcast
  check_domain(op.name, traits.domain, dtype);
  LazyTensor made_of_a;
  LazyTensor made_of_b;
  const LazyTensor& x = fitted(op, a, dtype, shape, made_of_a);
  const LazyTensor& y = fitted(op, b, dtype, shape, made_of_b);
  return LazyTensor(Node::make(op, shape, traits.gives_boolean ? DType::boolean : dtype,
                               device_of_both(op, x, y), x.node(), y.node()));
}

}  // namespace

LazyTensor elementwise(const OpDef& op, const LazyTensor& a, const LazyTensor& b) {
  const ScalarOpInfo& traits = info(op.scalar);
  const Node& x = a.node();
  const Node& y = b.node();
  const bool alike = x.dtype() == y.dtype() && x.interned_shape() == y.interned_shape() &&
                     x.device() == y.device() && !x.is_scalar_leaf() && !y.is_scalar_leaf();
  if (!alike || !in_domain(traits.domain, x.dtype())) return elementwise_of_unlike(op, traits, a, b);
  // Nothing to convert, and extents that some tensor has already.
  return LazyTensor(Node::make(op, x.interned_shape(), traits.gives_boolean ? DType::boolean : x.dtype(),
                               x.device(), a.node(), b.node()));
}

}  // namespace caldera::ops
