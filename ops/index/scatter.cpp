#include "ops/index/scatter.h"

#include <fmt/core.h>

#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

using ops::Indices;

constexpr std::int64_t kMostPositions = std::numeric_limits<std::int32_t>::max();

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

void check_mask(const char* op, const LazyTensor& mask) {
  if (mask.dtype() != DType::boolean)
    throw DTypeError(fmt::format("{}: a mask is of bool, got {}; compare it with 0", op, name(mask.dtype())));
}

/// Where the k-th element that holds is, for k = 0 ... size - 1, and the number of elements where there is
/// none. By bisection, which is many searches side by side, unlike a scatter to the places of a vector.
LazyTensor positions(const char* op, const LazyTensor& mask, std::int64_t size) {
  const std::int64_t n = mask.numel();
  if (size < 0 || size > kMostPositions) throw ValueError(fmt::format("{}: a size of {}", op, size));
  if (n >= kMostPositions)
    throw ShapeError(fmt::format("{}: {} has more elements than int32 counts", op, mask.shape().to_string()));
  const LazyTensor rank = iota(Shape{size}, 0, DType::i32, mask.device());
  LazyTensor at = zeros_like(rank);
  if (n == 0 || size == 0) return at;
  // The first position behind which more than k elements hold, bit by bit from the highest.
  const LazyTensor counts = cumsum(astype(reshape(mask, Shape{n}), DType::i32));
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n))); step > 0;
       step /= 2) {
    const LazyTensor next = at + step;
    at = where(logical_and(next <= n, take(counts, next - 1) <= rank), next, at);
  }
  return at;
}

}  // namespace

LazyTensor scatter(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates, int axis) {
  return ops::scattered_by_shared("scatter", Scatter::set, base, indices, updates, axis);
}
LazyTensor scatter_max(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       int axis) {
  return ops::scattered_by_shared("scatter_max", Scatter::maximum, base, indices, updates, axis);
}
LazyTensor scatter_min(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       int axis) {
  return ops::scattered_by_shared("scatter_min", Scatter::minimum, base, indices, updates, axis);
}

LazyTensor take_along_axis(const LazyTensor& x, const LazyTensor& indices, int axis) {
  const int at = x.shape().normalize_axis(axis, "take_along_axis");
  const LazyTensor which = ops::indices_along("take_along_axis", indices, x, at);
  const Shape beside = around("take_along_axis", x, which, at);
  return ops::gathered(broadcast_to(x, with_extent(beside, at, x.shape(at))),
                       broadcast_to(which, with_extent(beside, at, which.shape(at))), at, Indices::aligned);
}

LazyTensor put_along_axis(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& values,
                          int axis, Scatter how) {
  const int at = base.shape().normalize_axis(axis, "put_along_axis");
  const LazyTensor which = ops::indices_along("put_along_axis", indices, base, at);
  if (around("put_along_axis", base, which, at) != with_extent(base.shape(), at, 1))
    throw ShapeError(fmt::format("put_along_axis: indices {} do not broadcast to {} but along axis {}",
                                 which.shape().to_string(), base.shape().to_string(), at));
  const Shape places = with_extent(base.shape(), at, which.shape(at));
  const LazyTensor updates =
      ops::anchored(ops::as_held_operand("put_along_axis", values, base.dtype()), base.device());
  if (broadcast_shapes(updates.shape(), places, "put_along_axis") != places)
    throw ShapeError(fmt::format("put_along_axis: values {} do not broadcast to the {} places of the indices",
                                 values.shape().to_string(), places.to_string()));
  const bool any = base.dtype() == DType::boolean && how == Scatter::add;
  return ops::scattered(any ? Scatter::maximum : how, base, broadcast_to(which, places),
                        broadcast_to(updates, places), at, Indices::aligned);
}

LazyTensor masked_fill(const LazyTensor& x, const LazyTensor& mask, const LazyTensor& value) {
  check_mask("masked_fill", mask);
  broadcast_shapes(x.shape(), mask.shape(), "masked_fill");
  if (value.rank() != 0)
    throw ShapeError(fmt::format("masked_fill: the value is one number, got {}; use where for more",
                                 value.shape().to_string()));
  return where(mask, ops::as_held_operand("masked_fill", value, x.dtype()), x);
}

LazyTensor masked_select(const LazyTensor& x, const LazyTensor& mask, std::int64_t size, FillValue fill) {
  check_mask("masked_select", mask);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_select");
  const std::int64_t n = shape.numel();
  const LazyTensor at = positions("masked_select", broadcast_to(mask, shape), size);
  LazyTensor rest = LazyTensor::full(Shape{size}, fill, x.dtype(), mask.device());
  if (n == 0) return rest;
  const LazyTensor all = broadcast_to(ops::anchored(x, mask.device()), shape);
  return where(at < n, take(reshape(all, Shape{n}), at), rest);
}

std::vector<LazyTensor> nonzero(const LazyTensor& x, std::int64_t size, std::int64_t fill) {
  if (x.rank() == 0) throw ShapeError("nonzero: () has no axes to give coordinates for");
  const std::int64_t n = x.numel();
  const LazyTensor holds = x.dtype() == DType::boolean ? x : not_equal(x, 0);
  const LazyTensor at = positions("nonzero", holds, size);
  const LazyTensor rest = LazyTensor::full(Shape{size}, fill, DType::i32, x.device());
  std::vector<LazyTensor> out;
  std::int64_t behind = n;
  for (const std::int64_t extent : x.shape()) {
    if (n == 0) {
      out.push_back(rest);
      continue;
    }
    behind /= extent;
    out.push_back(where(at < n, remainder(floor_divide(at, behind), extent), rest));
  }
  return out;
}

}  // namespace caldera
