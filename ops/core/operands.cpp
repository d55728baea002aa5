#include "ops/core/operands.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "engine/graph/tracing/tracing.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
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
  return make(op, x.shape(), traits.gives_boolean ? DType::boolean : dtype, {cast ? &converted : &x, 1});
}

namespace {

/// Of operands that may have to be converted or broadcast.
LazyTensor elementwise_of_unlike(const OpDef& op, const ScalarOpInfo& traits, const LazyTensor& a,
                                 const LazyTensor& b) {
  const Shape& x = a.shape();
  const Shape& y = b.shape();
  const std::array<const LazyTensor*, 2> given{&a, &b};
  DType dtype = promote(dtype_beside(a, b), dtype_beside(b, a));
  Shape shape = x;
  if (x != y) {
    shape = broadcast_shapes(x, y, std::string(op.name).c_str());
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
