#include "ops/core/broadcast.h"

#include <fmt/core.h>

#include <array>
#include <span>
#include <vector>

#include "ops/core/checked_shape.h"
#include "ops/core/node_builder.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

void broadcast_vjp(VjpContext& c) {
  std::vector<int> stretched;
  const Shape& from = c.inputs[0].shape();
  for (int i = 0; i < from.rank(); ++i) {
    if (from[i] != c.output.shape()[i]) stretched.push_back(i);
  }
  c.grads[0] = ops::sum_along(c.cotangent, stretched, true);
}

void sum_vjp(VjpContext& c) { c.grads[0] = broadcast_to(c.cotangent, c.inputs[0].shape()); }

const OpDef kBroadcast{
    .name = "broadcast_to", .kind = OpClass::broadcast, .vjp = broadcast_vjp, .jvp = ops::linear_jvp};
const OpDef kSum{
    .name = "sum", .kind = OpClass::reduce, .scalar = ScalarOp::add, .vjp = sum_vjp, .jvp = ops::linear_jvp};

/// Whether extents of 1 become others, and nothing else changes.
bool is_stretched(const Shape& from, const Shape& to) {
  if (from.rank() != to.rank()) return false;
  for (int i = 0; i < from.rank(); ++i)
    if (from[i] != to[i] && from[i] != 1) return false;
  return true;
}

}  // namespace

LazyTensor broadcast_to(const LazyTensor& x, const Shape& shape) {
  const Shape& from = x.shape();
  if (from == shape) return x;
  if (is_stretched(from, shape)) {
    ops::check_extents(kBroadcast.name, shape, x.dtype());
    return ops::make_checked(kBroadcast, shape, x.dtype(), x);
  }
  if (x.rank() > shape.rank() || broadcast_shapes(x.shape(), shape, "broadcast_to") != shape) {
    throw ShapeError(fmt::format("broadcast_to: shape {} does not broadcast to {}", x.shape().to_string(),
                                 shape.to_string()));
  }
  Shape aligned = x.shape();
  while (aligned.rank() < shape.rank()) aligned.insert(0, 1);
  LazyTensor y = reshape(x, aligned);
  if (aligned == shape) return y;
  return ops::make(kBroadcast, shape, x.dtype(), std::span(&y, 1));
}

LazyTensor ops::reduced_along(const OpDef& op, const LazyTensor& x, const Axes& which, bool keepdims) {
  const Dims axes = resolve_axes(which, x.shape(), op.name);
  Shape kept = x.shape();
  std::int64_t mask = 0;
  for (std::int64_t axis : axes) {
    if (kept[static_cast<int>(axis)] != 1) mask |= std::int64_t{1} << axis;
    kept[static_cast<int>(axis)] = 1;
  }
  LazyTensor out;
  if (mask != 0) {
    const std::array<std::int64_t, 1> attributes{mask};
    out = make_checked(op, kept, x.dtype(), x, attributes);
  } else {
    out = x;
  }
  if (keepdims) return out;
  Shape squeezed;
  for (int i = 0, next = 0; i < kept.rank(); ++i) {
    if (next < axes.rank() && axes[next] == i)
      ++next;
    else
      squeezed.push_back(kept[i]);
  }
  return reshape(out, squeezed);
}

LazyTensor ops::sum_along(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return reduced_along(kSum, x, axes, keepdims);
}

}  // namespace caldera
