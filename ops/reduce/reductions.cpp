// Reductions over any axes, with their gradients.
#include <fmt/core.h>

#include <array>
#include <bit>

#include "ops/core/node_builder.h"

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

/// Which elements are the first along the reduced axis to attain the extremum, or to be NaN if it is.
LazyTensor are_first(const LazyTensor& x, const LazyTensor& extremum) {
  const OpDef& op = extremum.node().op();
  const int axis = std::countr_zero(static_cast<std::uint64_t>(extremum.node().attributes()[0]));
  const LazyTensor first = op.scalar == ScalarOp::maximum ? argmax(x, axis, true) : argmin(x, axis, true);
  return iota(x.shape(), axis, DType::i32, x.device()) == first;
}
void first_extremum_vjp(VjpContext& c) {
  const LazyTensor& x = c.inputs[0];
  c.grads[0] = where(are_first(x, c.output), broadcast_to(c.cotangent, x.shape()), zeros_like(x));
}
void first_extremum_jvp(JvpContext& c) {
  const LazyTensor& x = c.inputs[0];
  const int axis = std::countr_zero(static_cast<std::uint64_t>(c.output.node().attributes()[0]));
  c.tangent = sum(where(are_first(x, c.output), c.tangents[0], zeros_like(x)), axis, true);
}

struct Rules {
  VjpRule vjp;
  JvpRule jvp;
};
constexpr Rules kSplit{extremum_vjp, extremum_jvp};
constexpr Rules kFirst{first_extremum_vjp, first_extremum_jvp};

constexpr OpDef extremum_op(std::string_view name, ScalarOp scalar, Rules rules) {
  return {.name = name, .kind = OpClass::reduce, .scalar = scalar, .vjp = rules.vjp, .jvp = rules.jvp};
}
const OpDef kMax = extremum_op("max", ScalarOp::maximum, kSplit);
const OpDef kMin = extremum_op("min", ScalarOp::minimum, kSplit);
const OpDef kMaxAlong = extremum_op("max", ScalarOp::maximum, kFirst);
const OpDef kMinAlong = extremum_op("min", ScalarOp::minimum, kFirst);
const OpDef kAmax = extremum_op("amax", ScalarOp::maximum, kSplit);
const OpDef kAmin = extremum_op("amin", ScalarOp::minimum, kSplit);

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

bool is_one(const Axes& axes) { return !axes.are_all() && axes.list().size() == 1; }

}  // namespace

LazyTensor sum(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return reduce(kSum, astype(x, sum_type(x.dtype())), axes, keepdims);
}

LazyTensor sum(const LazyTensor& x, const Axes& axes, DType dtype, bool keepdims) {
  return astype(sum(astype(x, dtype), axes, keepdims), dtype);
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
  return extremum(is_one(axes) ? kMaxAlong : kMax, x, axes, keepdims);
}
LazyTensor min(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return extremum(is_one(axes) ? kMinAlong : kMin, x, axes, keepdims);
}
LazyTensor amax(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return extremum(kAmax, x, axes, keepdims);
}
LazyTensor amin(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return extremum(kAmin, x, axes, keepdims);
}

}  // namespace caldera
