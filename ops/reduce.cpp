// Reductions over any axes, with their gradients.
#include <fmt/core.h>

#include <array>

#include "ops/build.h"

namespace caldera {
namespace {

void sum_vjp(VjpContext& c) { c.grads[0] = broadcast_to(c.cotangent, c.inputs[0].shape()); }

/// Every element that attains the extremum gets an equal share: `hits` are 1 there, and `counts` how many.
struct Attained {
  LazyTensor hits;
  LazyTensor counts;
  std::vector<int> axes;
};
Attained attained(const LazyTensor& x, const LazyTensor& extremum) {
  Attained at;
  at.hits = astype(x == broadcast_to(extremum, x.shape()), x.dtype());
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape()[i] != extremum.shape()[i]) at.axes.push_back(i);
  }
  at.counts = sum(at.hits, at.axes, true);
  return at;
}

void extremum_vjp(VjpContext& c) {
  const Attained at = attained(c.inputs[0], c.output);
  c.grads[0] = at.hits * (c.cotangent / at.counts);
}
void extremum_jvp(JvpContext& c) {
  const Attained at = attained(c.inputs[0], c.output);
  c.tangent = sum(at.hits * c.tangents[0], at.axes, true) / at.counts;
}

const OpDef kSum{
    .name = "sum", .kind = OpClass::reduce, .scalar = ScalarOp::add, .vjp = sum_vjp, .jvp = ops::linear_jvp};
const OpDef kMax{.name = "max",
                 .kind = OpClass::reduce,
                 .scalar = ScalarOp::maximum,
                 .vjp = extremum_vjp,
                 .jvp = extremum_jvp};
const OpDef kMin{.name = "min",
                 .kind = OpClass::reduce,
                 .scalar = ScalarOp::minimum,
                 .vjp = extremum_vjp,
                 .jvp = extremum_jvp};

LazyTensor reduce(const OpDef& op, const LazyTensor& x, const Axes& which, bool keepdims) {
  const Dims axes = ops::resolve_axes(which, x.shape(), op.name);
  Shape kept = x.shape();
  std::int64_t mask = 0;
  for (std::int64_t axis : axes) {
    if (kept[static_cast<int>(axis)] != 1) mask |= std::int64_t{1} << axis;
    kept[static_cast<int>(axis)] = 1;
  }
  LazyTensor out = x;
  if (mask != 0) {
    const std::array<std::int64_t, 1> attributes{mask};
    out = ops::make(op, kept, x.dtype(), {x}, attributes);
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

LazyTensor extremum(const OpDef& op, const LazyTensor& x, const Axes& axes, bool keepdims) {
  ops::check_domain(op.name, ScalarDomain::numeric, x.dtype());
  for (std::int64_t axis : ops::resolve_axes(axes, x.shape(), op.name)) {
    if (x.shape()[static_cast<int>(axis)] == 0) {
      throw ShapeError(fmt::format("{}: axis {} of shape {} is empty: there is no element to choose", op.name,
                                   axis, x.shape().to_string()));
    }
  }
  return reduce(op, x, axes, keepdims);
}

}  // namespace

LazyTensor sum(const LazyTensor& x, const Axes& axes, bool keepdims) {
  const bool small = x.dtype() == DType::boolean || x.dtype() == DType::u8;
  return reduce(kSum, small ? astype(x, DType::i32) : x, axes, keepdims);
}

LazyTensor mean(const LazyTensor& x, const Axes& axes, bool keepdims) {
  // 16-bit types in f32: the sum alone might overflow.
  const DType type = is_floating(x.dtype()) ? x.dtype() : DType::f32;
  const LazyTensor real = astype(x, compute_type(type));
  std::int64_t count = 1;
  for (std::int64_t axis : ops::resolve_axes(axes, x.shape(), "mean")) {
    count *= x.shape()[static_cast<int>(axis)];
  }
  return astype(sum(real, axes, keepdims) / static_cast<double>(count), type);
}

LazyTensor max(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return extremum(kMax, x, axes, keepdims);
}
LazyTensor min(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return extremum(kMin, x, axes, keepdims);
}

}  // namespace caldera
