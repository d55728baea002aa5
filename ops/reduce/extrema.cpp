#include "ops/reduce/extrema.h"

#include <fmt/core.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/core/along_axis.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

using ops::sum_along;

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
  at.counts = sum_along(at.hits, at.axes, true);
  return at;
}

void extremum_vjp(VjpContext& c) {
  const Attained at = attained(c.inputs[0], c.output);
  c.grads[0] = at.hits * (c.cotangent / at.counts);
}
void extremum_jvp(JvpContext& c) {
  const Attained at = attained(c.inputs[0], c.output);
  c.tangent = sum_along(at.hits * c.tangents[0], at.axes, true) / at.counts;
}

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
  c.tangent = sum_along(where(are_first(x, c.output), c.tangents[0], zeros_like(x)), axis, true);
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

/// Throws ShapeError where an axis that is reduced has no elements.
void check_not_empty(const OpDef& op, const Shape& shape, const Axes& axes) {
  for (std::int64_t axis : ops::resolve_axes(axes, shape, op.name)) {
    if (shape[static_cast<int>(axis)] == 0) {
      throw ShapeError(fmt::format("{}: axis {} of shape {} is empty: there is no element to choose", op.name,
                                   axis, shape.to_string()));
    }
  }
}

LazyTensor extremum(const OpDef& op, const LazyTensor& x, const Axes& axes, bool keepdims) {
  ops::check_domain(op.name, ScalarDomain::numeric, x.dtype());
  if (x.numel() == 0) check_not_empty(op, x.shape(), axes);
  return ops::reduced_along(op, x, axes, keepdims);
}

bool is_one(const Axes& axes) { return !axes.are_all() && axes.list().size() == 1; }

constexpr std::int64_t kMostPlaces = std::numeric_limits<std::int32_t>::max();

/// The first position at which x attains its extremum.
LazyTensor first_of(const char* op, LazyTensor (*extremum)(const LazyTensor&, const Axes&, bool),
                    const LazyTensor& x, std::optional<int> axis, bool keepdims) {
  ops::check_domain(op, ScalarDomain::numeric, x.dtype());
  if (axis && x.rank() == 0)
    return ops::along_axis(op, x, *axis, [&](const LazyTensor& row, int at) {
      return first_of(op, extremum, row, at, keepdims);
    });
  const LazyTensor flat = axis ? x : reshape(x, Shape{x.numel()});
  const int at = axis ? x.shape().normalize_axis(*axis, op) : 0;
  const std::int64_t n = flat.shape(at);
  if (n == 0)
    throw ShapeError(fmt::format("{}: {} has no element along axis {}", op, x.shape().to_string(), at));
  if (n > kMostPlaces)
    throw ShapeError(fmt::format("{}: {} has more elements than int32 can count", op, x.shape().to_string()));
  const LazyTensor best = extremum(flat, at, true);
  // The extremum is NaN if any element is.
  const LazyTensor hits =
      is_floating(x.dtype()) ? logical_or(equal(flat, best), isnan(flat)) : equal(flat, best);
  const LazyTensor index = iota(flat.shape(), at, DType::i32, x.device());
  const LazyTensor first = min(where(hits, index, full_like(index, n - 1)), at, true);
  if (!keepdims) return squeeze(first, at);
  return axis ? first : reshape(first, Shape(Dims::filled(x.rank(), 1)));
}

}  // namespace

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

LazyTensor argmax(const LazyTensor& x, std::optional<AxisIndex> axis, bool keepdims) {
  return first_of("argmax", caldera::max, x, axis, keepdims);
}
LazyTensor argmin(const LazyTensor& x, std::optional<AxisIndex> axis, bool keepdims) {
  return first_of("argmin", caldera::min, x, axis, keepdims);
}

}  // namespace caldera
