// index, index_put, and at() with index tensors and masks.
#include <fmt/core.h>

#include <limits>
#include <utility>

#include "ops/core/broadcast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/index/at.h"

namespace caldera {
namespace {

/// What index tensors name together.
struct Places {
  LazyTensor flat;  // positions along the first axes as one; an outside index is outside there too
  Shape merged;     // x's shape with those axes as one
  Shape shape;      // of x[indices]
};

Places places_of(const char* op, const LazyTensor& x, const std::vector<LazyTensor>& indices) {
  const auto count = static_cast<int>(indices.size());
  if (count == 0 || count > x.rank())
    throw ShapeError(
        fmt::format("{}: {} indices for the {} axes of {}", op, count, x.rank(), x.shape().to_string()));
  Places out;
  std::int64_t places = 1;
  LazyTensor all_inside;
  for (int axis = 0; axis < count; ++axis) {
    const std::int64_t n = x.shape(axis);
    LazyTensor at = ops::indices_along(op, indices[static_cast<std::size_t>(axis)], x, axis);
    out.shape = broadcast_shapes(out.shape, at.shape(), op);
    places *= n;
    if (places > std::numeric_limits<std::int32_t>::max())
      throw ShapeError(fmt::format("{}: the indexed axes of {} have more elements than int32 counts", op,
                                   x.shape().to_string()));
    const LazyTensor inside = logical_and(at >= -n, at < n);
    at = where(at < 0, at + n, at);
    all_inside = axis == 0 ? inside : logical_and(all_inside, inside);
    out.flat = axis == 0 ? at : out.flat * n + at;
  }
  if (count > 1) out.flat = where(all_inside, out.flat, full_like(out.flat, -1));
  out.merged.push_back(places);
  for (int axis = count; axis < x.rank(); ++axis) {
    out.merged.push_back(x.shape(axis));
    if (out.shape.rank() == kMaxRank)
      throw ShapeError(
          fmt::format("{}: {} indexed has more than {} dimensions", op, x.shape().to_string(), kMaxRank));
    out.shape.push_back(x.shape(axis));
  }
  return out;
}

}  // namespace

LazyTensor index(const LazyTensor& x, const std::vector<LazyTensor>& indices) {
  const Places places = places_of("index", x, indices);
  return ops::gathered(reshape(x, places.merged), places.flat, 0, ops::Indices::shared);
}

LazyTensor index_put(const LazyTensor& x, const std::vector<LazyTensor>& indices, const LazyTensor& values,
                     Scatter how) {
  const Places places = places_of("index_put", x, indices);
  const LazyTensor updates = ops::anchored(ops::as_held_operand("index_put", values, x.dtype()), x.device());
  if (broadcast_shapes(updates.shape(), places.shape, "index_put") != places.shape)
    throw ShapeError(fmt::format("index_put: values of {} do not broadcast to the {} elements",
                                 values.shape().to_string(), places.shape.to_string()));
  const bool any = x.dtype() == DType::boolean && how == Scatter::add;
  return reshape(ops::scattered(any ? Scatter::maximum : how, reshape(x, places.merged), places.flat,
                                broadcast_to(updates, places.shape), 0, ops::Indices::shared),
                 x.shape());
}

AtTensors::AtTensors(LazyTensor x, std::vector<LazyTensor> which) : x_(std::move(x)) {
  if (which.size() != 1 || which[0].dtype() != DType::boolean) {
    for (const LazyTensor& indices : which) ops::check_index_type("at", indices);
    indices_ = std::move(which);
    return;
  }
  const LazyTensor& mask = which[0];
  Shape shape = mask.shape();
  bool fits = mask.rank() <= x_.rank();
  for (int axis = 0; fits && axis < x_.rank(); ++axis) {
    if (axis < mask.rank())
      fits = mask.shape(axis) == x_.shape(axis);
    else
      shape.push_back(1);
  }
  if (!fits)
    throw ShapeError(fmt::format("at: a mask of {} does not have the first extents of {}",
                                 mask.shape().to_string(), x_.shape().to_string()));
  mask_ = reshape(mask, shape);
}

LazyTensor AtTensors::get() const {
  if (mask_.defined())
    throw ValueError(
        fmt::format("at: how many elements of {} a mask chooses is not known before it is computed; "
                    "use masked_select, which is told a number, or where",
                    x_.shape().to_string()));
  return index(x_, indices_);
}

LazyTensor AtTensors::put(Scatter how, const LazyTensor& values) const {
  if (how != Scatter::set) ops::check_domain("at", ScalarDomain::numeric, x_.dtype());
  return index_put(x_, indices_, values, how);
}

LazyTensor AtTensors::spread(const LazyTensor& values, const LazyTensor& rest) const {
  const LazyTensor y = ops::as_held_operand("at", values, x_.dtype());
  if (broadcast_shapes(y.shape(), x_.shape(), "at") != x_.shape())
    throw ShapeError(fmt::format("at: values of {} do not broadcast to {}, of which a mask takes some",
                                 values.shape().to_string(), x_.shape().to_string()));
  return where(mask_, y, rest);
}

LazyTensor AtTensors::set(const LazyTensor& values) const {
  return mask_.defined() ? spread(values, x_) : put(Scatter::set, values);
}
LazyTensor AtTensors::add(const LazyTensor& values) const {
  ops::check_domain("at", ScalarDomain::numeric, x_.dtype());
  return mask_.defined() ? x_ + spread(values, zeros_like(x_)) : put(Scatter::add, values);
}
LazyTensor AtTensors::multiply(const LazyTensor& values) const {
  ops::check_domain("at", ScalarDomain::numeric, x_.dtype());
  if (!mask_.defined())
    throw ValueError(
        "at: multiply takes slices or a mask; with indices, set what get() gives times the values");
  return x_ * spread(values, ones_like(x_));
}
LazyTensor AtTensors::minimum(const LazyTensor& values) const {
  ops::check_domain("at", ScalarDomain::numeric, x_.dtype());
  return mask_.defined() ? where(mask_, caldera::minimum(x_, spread(values, x_)), x_)
                         : put(Scatter::minimum, values);
}
LazyTensor AtTensors::maximum(const LazyTensor& values) const {
  ops::check_domain("at", ScalarDomain::numeric, x_.dtype());
  return mask_.defined() ? where(mask_, caldera::maximum(x_, spread(values, x_)), x_)
                         : put(Scatter::maximum, values);
}

}  // namespace caldera
