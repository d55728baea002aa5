#include "ops/shape/repetition.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "engine/graph/data_leaf.h"
#include "ops/core/broadcast.h"
#include "ops/core/comparison.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"

namespace caldera {
namespace {

void check_count(const char* op, std::int64_t count) {
  if (count < 0) throw ValueError(fmt::format("{}: cannot repeat {} times", op, count));
}

void check_room(const char* op, const LazyTensor& x) {
  if (x.rank() == kMaxRank)
    throw ShapeError(fmt::format("{}: shape {} leaves no room for another axis: {} is the most", op,
                                 x.shape().to_string(), kMaxRank));
}

/// Of repetitions for every axis. One broadcast along new axes, each in front of the block that it repeats.
LazyTensor tiled(const LazyTensor& x, const Shape& repetitions) {
  Shape from, to, out;
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t extent = x.shape(i), times = repetitions[i];
    out.push_back(extent * times);
    if (times == 1 && !from.empty()) {  // one block with the axis before
      from[from.rank() - 1] *= extent;
      to[to.rank() - 1] *= extent;
      continue;
    }
    if (times != 1) {
      from.push_back(1);
      to.push_back(times);
    }
    from.push_back(extent);
    to.push_back(extent);
  }
  return reshape(broadcast_to(reshape(x, from), to), out);
}

}  // namespace

LazyTensor tile(const LazyTensor& x, const std::vector<std::int64_t>& repetitions) {
  if (repetitions.size() > static_cast<std::size_t>(kMaxRank))
    throw ShapeError(
        fmt::format("tile: {} repetitions; a tensor has {} axes at most", repetitions.size(), kMaxRank));
  Shape shape = x.shape(), times{std::span<const std::int64_t>(repetitions)};
  while (shape.rank() < times.rank()) shape.insert(0, 1);
  while (times.rank() < shape.rank()) times.insert(0, 1);
  Shape out = shape;
  for (int i = 0; i < times.rank(); ++i) {
    check_count("tile", times[i]);
    if (__builtin_mul_overflow(out[i], times[i], &out[i]))
      throw ShapeError(fmt::format("tile: shape {} cannot be repeated {} times", x.shape().to_string(),
                                   times.to_string()));
  }
  ops::check_extents("tile", out, x.dtype());
  // A few axes at a time: each that is repeated is two for a while, of which a tensor has not many.
  constexpr int kAtOnce = 2;
  LazyTensor y = reshape(x, shape);
  while (true) {
    Shape now(Dims::filled(times.rank(), 1));
    int repeated = 0;
    for (int i = 0; i < times.rank() && repeated < kAtOnce; ++i) {
      if (times[i] == 1) continue;
      std::swap(now[i], times[i]);
      ++repeated;
    }
    if (repeated == 0) return y;
    y = tiled(y, now);
  }
}

LazyTensor repeat(const LazyTensor& x, std::int64_t count, std::optional<AxisIndex> axis) {
  check_count("repeat", count);
  LazyTensor y = axis ? x : reshape(x, Shape{x.numel()});
  const int at = y.shape().normalize_axis(axis.value_or(0), "repeat");
  if (count == 1) return y;
  Shape out = y.shape();
  if (__builtin_mul_overflow(out[at], count, &out[at]))
    throw ShapeError(
        fmt::format("repeat: shape {} cannot be repeated {} times", x.shape().to_string(), count));
  ops::check_extents("repeat", out, x.dtype());
  Shape blocks{1, 1, 1};  // the elements, their copies, what belongs to each
  for (int i = 0; i < y.rank(); ++i) blocks[i <= at ? 0 : 2] *= y.shape(i);
  const LazyTensor single = reshape(y, blocks);
  blocks[1] = count;
  return reshape(broadcast_to(single, blocks), out);
}

LazyTensor repeat(const LazyTensor& x, const std::vector<std::int64_t>& counts,
                  std::optional<AxisIndex> axis) {
  if (counts.size() == 1) return repeat(x, counts[0], axis);
  const LazyTensor y = axis ? x : reshape(x, Shape{x.numel()});
  const int at = y.shape().normalize_axis(axis.value_or(0), "repeat");
  if (static_cast<std::int64_t>(counts.size()) != y.shape(at))
    throw ShapeError(fmt::format("repeat: {} counts for the {} elements along axis {} of shape {}",
                                 counts.size(), y.shape(at), axis.value_or(0), x.shape().to_string()));
  std::vector<std::int32_t> indices;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    check_count("repeat", counts[i]);
    if (counts[i] > std::numeric_limits<std::int32_t>::max())
      throw ShapeError(fmt::format("repeat: {} copies of an element of shape {} are too many", counts[i],
                                   x.shape().to_string()));
    indices.insert(indices.end(), static_cast<std::size_t>(counts[i]), static_cast<std::int32_t>(i));
  }
  const Shape shape{static_cast<std::int64_t>(indices.size())};
  return take(y, host_leaf<std::int32_t>(indices, shape, x.device()), at);
}

LazyTensor unfold(const LazyTensor& x, AxisIndex axis, std::int64_t size, std::int64_t step) {
  check_room("unfold", x);
  const int at = x.shape().normalize_axis(axis, "unfold");
  if (size < 1 || step < 1)
    throw ValueError(fmt::format("unfold: size {} and step {}, want 1 or more", size, step));
  const std::int64_t extent = x.shape(at);
  if (size > extent)
    throw ShapeError(fmt::format("unfold: a window of {} does not fit axis {} of shape {}", size, axis,
                                 x.shape().to_string()));
  const std::int64_t count = (extent - size) / step + 1;
  std::vector<LazyTensor> elements;
  // Either the elements of one place in all windows, or the windows: what makes fewer parts.
  if (size <= count) {
    for (std::int64_t i = 0; i < size; ++i)
      elements.push_back(slice(x, at, i, i + (count - 1) * step + 1, step));
    return stack(elements, -1);
  }
  for (std::int64_t i = 0; i < count; ++i) elements.push_back(slice(x, at, i * step, i * step + size));
  return moveaxis(stack(elements, at), at + 1, -1);
}

LazyTensor diff(const LazyTensor& x, std::int64_t n, AxisIndex axis, const LazyTensor& prepend,
                const LazyTensor& append) {
  const int at = x.shape().normalize_axis(axis, "diff");
  if (n < 0) throw ValueError(fmt::format("diff: n is {}, want 0 or more", n));
  std::vector<LazyTensor> parts;
  for (const LazyTensor& part : {prepend, x, append}) {
    if (!part.defined()) continue;
    Shape fitting = part.shape();
    if (fitting.rank() == x.rank()) fitting[at] = x.shape(at);
    if (fitting != x.shape())
      throw ShapeError(fmt::format("diff: {} does not fit {} along axis {}", part.shape().to_string(),
                                   x.shape().to_string(), axis));
    parts.push_back(part);
  }
  if (n == 0) return x;
  LazyTensor y = concatenate(parts, at);
  for (std::int64_t i = 0; i < n && y.shape(at) > 0; ++i) {
    const LazyTensor later = slice(y, at, 1, std::nullopt), earlier = slice(y, at, 0, y.shape(at) - 1);
    y = y.dtype() == DType::boolean ? logical_xor(later, earlier) : later - earlier;
  }
  return y;
}

}  // namespace caldera
