#include "ops/shape/manipulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ops/core/broadcast.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/dynamic_slicing.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

/// The axes in the order in which they were named, as indices; all of them if none was.
std::vector<int> listed(const Axes& axes, const Shape& shape, const char* op) {
  std::vector<int> out;
  if (axes.are_all()) {
    for (int i = 0; i < shape.rank(); ++i) out.push_back(i);
    return out;
  }
  for (const int axis : axes.list()) out.push_back(shape.normalize_axis(axis, op));
  return out;
}

bool has_repeats(std::vector<int> axes) {
  std::ranges::sort(axes);
  return std::ranges::adjacent_find(axes) != axes.end();
}

LazyTensor rolled(const LazyTensor& x, std::int64_t shift, int axis) {
  const std::int64_t extent = x.shape(axis);
  if (extent == 0) return x;
  const std::int64_t front = (extent - shift % extent) % extent;  // the element that comes to the front
  if (front == 0) return x;
  // A window over x twice, so that the shift is an argument of the plan.
  std::vector<std::int64_t> starts(static_cast<std::size_t>(x.rank()), 0);
  starts[static_cast<std::size_t>(axis)] = front;
  return dynamic_slice(concatenate({x, x}, axis), starts, {x.shape().begin(), x.shape().end()});
}

}  // namespace

LazyTensor flip(const LazyTensor& x, const Axes& axes) {
  LazyTensor y = x;
  for (const std::int64_t axis : ops::resolve_axes(axes, x.shape(), "flip")) {
    const int at = static_cast<int>(axis);
    if (x.shape(at) > 1) y = slice(y, at, std::nullopt, std::nullopt, -1);
  }
  return y;
}

LazyTensor rot90(const LazyTensor& x, std::int64_t k, const Axes& axes) {
  const std::vector<int> plane = listed(axes, x.shape(), "rot90");
  if (plane.size() != 2 || has_repeats(plane))
    throw ValueError(fmt::format("rot90: {} axes of {} are named, want two different ones", plane.size(),
                                 x.shape().to_string()));
  switch ((k % 4 + 4) % 4) {
    case 1:
      return swapaxes(flip(x, plane[1]), plane[0], plane[1]);
    case 2:
      return flip(x, {plane[0], plane[1]});
    case 3:
      return flip(swapaxes(x, plane[0], plane[1]), plane[1]);
    default:
      return x;
  }
}

LazyTensor roll(const LazyTensor& x, std::int64_t shift) {
  return reshape(rolled(reshape(x, Shape{x.numel()}), shift, 0), x.shape());
}
LazyTensor roll(const LazyTensor& x, std::int64_t shift, const Axes& axes) {
  LazyTensor y = x;
  for (const int axis : listed(axes, x.shape(), "roll")) y = rolled(y, shift, axis);
  return y;
}
LazyTensor roll(const LazyTensor& x, const std::vector<std::int64_t>& shifts, const Axes& axes) {
  const std::vector<int> along = listed(axes, x.shape(), "roll");
  if (along.size() != shifts.size())
    throw ValueError(fmt::format("roll: {} shifts for {} axes of shape {}", shifts.size(), along.size(),
                                 x.shape().to_string()));
  LazyTensor y = x;
  for (std::size_t i = 0; i < along.size(); ++i) y = rolled(y, shifts[i], along[i]);
  return y;
}

LazyTensor moveaxis(const LazyTensor& x, const Axes& source, const Axes& destination) {
  const std::vector<int> from = listed(source, x.shape(), "moveaxis"),
                         to = listed(destination, x.shape(), "moveaxis");
  if (from.size() != to.size() || has_repeats(from) || has_repeats(to))
    throw ShapeError(
        fmt::format("moveaxis: shape {}: {} source axes and {} destinations, want as many of each and "
                    "none twice",
                    x.shape().to_string(), from.size(), to.size()));
  constexpr int kFree = -1;
  std::vector<int> order(static_cast<std::size_t>(x.rank()), kFree);
  for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  int next = 0;
  for (int& axis : order) {
    if (axis != kFree) continue;
    while (std::ranges::find(from, next) != from.end()) ++next;
    axis = next++;
  }
  return permute_dims(x, order);
}

LazyTensor flatten(const LazyTensor& x, AxisIndex first, AxisIndex last) {
  if (x.rank() == 0 && first >= -1 && first <= 0 && last >= -1 && last <= 0) return reshape(x, Shape{1});
  const int begin = x.shape().normalize_axis(first, "flatten"),
            end = x.shape().normalize_axis(last, "flatten");
  if (begin > end)
    throw ShapeError(fmt::format("flatten: axis {} of shape {} does not come before axis {}", first,
                                 x.shape().to_string(), last));
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i > begin && i <= end)
      shape[begin] *= x.shape(i);
    else
      shape.push_back(x.shape(i));
  }
  return reshape(x, shape);
}

LazyTensor unflatten(const LazyTensor& x, AxisIndex axis, const Shape& extents) {
  const int at = x.shape().normalize_axis(axis, "unflatten");
  const auto refuse = [&] {
    throw ShapeError(fmt::format("unflatten: axis {} of shape {} is not {}", axis, x.shape().to_string(),
                                 extents.to_string()));
  };
  std::int64_t known = 1;
  int unknown = 0;
  for (const std::int64_t extent : extents) {
    if (extent < -1 || (extent == -1 && ++unknown > 1)) refuse();
    if (extent >= 0 && __builtin_mul_overflow(known, extent, &known)) refuse();
  }
  const std::int64_t extent = x.shape(at);
  if (unknown == 0 ? known != extent : (known == 0 || extent % known != 0)) refuse();
  if (extents.empty() || x.rank() - 1 + extents.rank() > kMaxRank) refuse();
  Shape shape;
  for (int i = 0; i < at; ++i) shape.push_back(x.shape(i));
  for (const std::int64_t part : extents) shape.push_back(part == -1 ? extent / known : part);
  for (int i = at + 1; i < x.rank(); ++i) shape.push_back(x.shape(i));
  return reshape(x, shape);
}

std::vector<LazyTensor> unstack(const LazyTensor& x, AxisIndex axis) {
  const int at = x.shape().normalize_axis(axis, "unstack");
  std::vector<LazyTensor> out;
  for (std::int64_t i = 0; i < x.shape(at); ++i) out.push_back(squeeze(slice(x, at, i, i + 1), at));
  return out;
}

std::vector<LazyTensor> split(const LazyTensor& x, const std::vector<std::int64_t>& sizes, AxisIndex axis) {
  const int at = x.shape().normalize_axis(axis, "split");
  std::int64_t total = 0;
  bool counted = true;
  for (const std::int64_t size : sizes)
    counted = counted && size >= 0 && !__builtin_add_overflow(total, size, &total);
  if (!counted || total != x.shape(at))
    throw ShapeError(fmt::format("split: the {} sizes do not add up to axis {} of shape {}", sizes.size(),
                                 axis, x.shape().to_string()));
  std::vector<LazyTensor> out;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    out.push_back(slice(x, at, start, start + size));
    start += size;
  }
  return out;
}

std::vector<LazyTensor> split(const LazyTensor& x, std::int64_t size, AxisIndex axis) {
  const std::int64_t extent = x.shape()[x.shape().normalize_axis(axis, "split")];
  if (size < 1) throw ValueError(fmt::format("split: size is {}, want 1 or more", size));
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = extent; left > 0; left -= sizes.back()) sizes.push_back(std::min(size, left));
  if (extent == 0) sizes.push_back(0);
  return split(x, sizes, axis);
}

std::vector<LazyTensor> chunk(const LazyTensor& x, std::int64_t count, AxisIndex axis) {
  const std::int64_t extent = x.shape()[x.shape().normalize_axis(axis, "chunk")];
  if (count < 1) throw ValueError(fmt::format("chunk: count is {}, want 1 or more", count));
  if (extent == 0) return std::vector<LazyTensor>(static_cast<std::size_t>(count), x);
  return split(x, extent / count + (extent % count != 0 ? 1 : 0), axis);
}

std::vector<LazyTensor> meshgrid(const std::vector<LazyTensor>& given, GridIndexing indexing) {
  const std::vector<LazyTensor> vectors = ops::as_tensors("meshgrid", given);
  if (vectors.size() > static_cast<std::size_t>(kMaxRank))
    throw ShapeError(fmt::format("meshgrid: {} vectors give more than {} axes", vectors.size(), kMaxRank));
  Shape shape;
  for (const LazyTensor& x : vectors) {
    if (x.rank() > 1) throw ShapeError(fmt::format("meshgrid: {} is not a vector", x.shape().to_string()));
    if (x.dtype() != vectors[0].dtype())
      throw DTypeError(fmt::format("meshgrid: vectors of {} and {}; cast them to one type",
                                   name(vectors[0].dtype()), name(x.dtype())));
    shape.push_back(x.numel());
  }
  const bool swapped = indexing == GridIndexing::xy && shape.rank() > 1;
  if (swapped) std::swap(shape[0], shape[1]);
  std::vector<LazyTensor> out;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = swapped && i < 2 ? 1 - i : i;
    Shape own(Dims::filled(shape.rank(), 1));
    own[axis] = shape[axis];
    out.push_back(broadcast_to(reshape(vectors[static_cast<std::size_t>(i)], own), shape));
  }
  return out;
}

std::vector<LazyTensor> broadcast_arrays(const std::vector<LazyTensor>& tensors) {
  Shape shape;
  for (const LazyTensor& x : tensors) shape = broadcast_shapes(shape, x.shape(), "broadcast_arrays");
  std::vector<LazyTensor> out;
  out.reserve(tensors.size());
  for (const LazyTensor& x : ops::as_tensors("broadcast_arrays", tensors))
    out.push_back(broadcast_to(x, shape));
  return out;
}

}  // namespace caldera
