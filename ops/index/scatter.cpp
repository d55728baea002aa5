#include "ops/index/scatter.h"

#include <fmt/core.h>

#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "ops/core/broadcast.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"

namespace caldera {
namespace {

using ops::Indices;

/// The shape with one extent along the axis.
Shape with_extent(Shape shape, int axis, std::int64_t extent) {
  shape[axis] = extent;
  return shape;
}

/// What x and indices along its axis broadcast to, with one extent along the axis.
Shape around(const char* op, const LazyTensor& x, const LazyTensor& indices, int axis) {
  const Shape &a = x.shape(), &b = indices.shape();
  bool fit = a.rank() == b.rank();
  Shape out = with_extent(a, axis, 1);
  for (int i = 0; fit && i < a.rank(); ++i) {
    if (i == axis) continue;
    fit = a[i] == b[i] || a[i] == 1 || b[i] == 1;
    if (a[i] == 1) out[i] = b[i];
  }
  if (!fit)
    throw ShapeError(
        fmt::format("{}: indices {} need the rank of {} and, but along axis {}, extents that broadcast", op,
                    b.to_string(), a.to_string(), axis));
  return out;
}

}  // namespace

LazyTensor scatter(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                   AxisIndex axis) {
  return ops::scattered_by_shared("scatter", Scatter::set, base, indices, updates, axis);
}
LazyTensor scatter_max(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       AxisIndex axis) {
  return ops::scattered_by_shared("scatter_max", Scatter::maximum, base, indices, updates, axis);
}
LazyTensor scatter_min(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       AxisIndex axis) {
  return ops::scattered_by_shared("scatter_min", Scatter::minimum, base, indices, updates, axis);
}

LazyTensor take_along_axis(const LazyTensor& x, const LazyTensor& indices, AxisIndex axis) {
  const int at = x.shape().normalize_axis(axis, "take_along_axis");
  const LazyTensor which = ops::indices_along("take_along_axis", indices, x, at);
  const Shape beside = around("take_along_axis", x, which, at);
  return ops::gathered(broadcast_to(x, with_extent(beside, at, x.shape(at))),
                       broadcast_to(which, with_extent(beside, at, which.shape(at))), at, Indices::aligned);
}

LazyTensor put_along_axis(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& values,
                          AxisIndex axis, Scatter how) {
  const int at = base.shape().normalize_axis(axis, "put_along_axis");
  const LazyTensor which = ops::indices_along("put_along_axis", indices, base, at);
  if (around("put_along_axis", base, which, at) != with_extent(base.shape(), at, 1))
    throw ShapeError(fmt::format("put_along_axis: indices {} do not broadcast to {} but along axis {}",
                                 which.shape().to_string(), base.shape().to_string(), at));
  const Shape places = with_extent(base.shape(), at, which.shape(at));
  const LazyTensor updates =
      ops::anchored(ops::as_held_operand("put_along_axis", values, base.dtype()), base.device());
  if (broadcast_shapes(updates.shape(), places, "put_along_axis") != places)
    throw ShapeError(fmt::format("put_along_axis: values {} do not broadcast to {}, the shape of the indices",
                                 values.shape().to_string(), places.to_string()));
  const bool any = base.dtype() == DType::boolean && how == Scatter::add;
  return ops::scattered(any ? Scatter::maximum : how, base, broadcast_to(which, places),
                        broadcast_to(updates, places), at, Indices::aligned);
}

}  // namespace caldera
