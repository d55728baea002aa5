#include "ops/spatial/adaptive_pooling.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/graph/data_leaf.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/index/scatter.h"
#include "ops/reduce/extrema.h"
#include "ops/spatial/windows.h"

namespace caldera {
namespace {

using windows::kLead;

/// The windows along one axis: `to` of at most `longest` elements.
struct Division {
  int axis;
  std::int64_t from, to, longest = 0;

  Division(int of_axis, std::int64_t extent, std::int64_t parts) : axis(of_axis), from(extent), to(parts) {
    for (std::int64_t i = 0; i < to; ++i) longest = std::max(longest, length(i));
  }
  std::int64_t first(std::int64_t i) const { return i * from / to; }
  std::int64_t length(std::int64_t i) const { return ((i + 1) * from + to - 1) / to - first(i); }
  bool is_even() const { return to > 0 && from % to == 0; }

  /// x with the axis as one of windows and one, behind it, of their elements; shorter windows repeat their
  /// last.
  LazyTensor windows(const LazyTensor& x) const {
    if (is_even()) {
      Shape shape = x.shape();
      shape[axis] = to;
      shape.insert(axis + 1, longest);
      return reshape(x, shape);
    }
    std::vector<std::int32_t> indices;
    for (std::int64_t i = 0; i < to; ++i) {
      for (std::int64_t j = 0; j < longest; ++j)
        indices.push_back(static_cast<std::int32_t>(first(i) + std::min(j, length(i) - 1)));
    }
    return take(x, host_leaf<std::int32_t>(indices, Shape{to, longest}, x.device()), axis);
  }
  /// The lengths of the windows, for what windows() gives.
  LazyTensor lengths(const LazyTensor& windows) const {
    std::vector<std::int32_t> all;
    for (std::int64_t i = 0; i < to; ++i) all.push_back(static_cast<std::int32_t>(length(i)));
    Shape shape(Dims::filled(windows.rank(), 1));
    shape[axis] = to;
    return host_leaf<std::int32_t>(all, shape, windows.device());
  }
  LazyTensor means(const LazyTensor& x) const {
    const LazyTensor parts = windows(x);
    if (is_even()) return sum(parts, axis + 1) / static_cast<double>(longest);
    const LazyTensor size = lengths(parts);
    Shape along(Dims::filled(parts.rank(), 1));
    along[axis + 1] = longest;
    const LazyTensor counts = less(iota(along, axis + 1, DType::i32, x.device()), size);
    return sum(where(counts, parts, 0), axis + 1) / squeeze(astype(size, x.dtype()), axis + 1);
  }
};

/// The axes that change, the last first. Results of no elements have no windows to look at.
std::vector<Division> divisions(const char* op, const LazyTensor& x, const Spatial& output_size) {
  const int n = windows::spatial_axes(op, x);
  Spatial sizes;
  for (const std::int64_t given : windows::each(op, "output_size", output_size, n, -1))
    sizes.push_back(given);
  std::vector<Division> out;
  for (int i = n; i-- > 0;) {
    const std::int64_t extent = x.shape(i + kLead), to = sizes[static_cast<std::size_t>(i)];
    if (extent == 0)
      throw ShapeError(fmt::format("{}: {} has an empty axis, of which windows would see nothing", op,
                                   x.shape().to_string()));
    if (to != -1 && to != extent) out.emplace_back(i + kLead, extent, to);
  }
  return out;
}

/// The result if it has no elements, which no window looks at.
LazyTensor without_elements(const LazyTensor& x, const std::vector<Division>& axes, DType dtype) {
  Shape shape = x.shape();
  for (const Division& d : axes) shape[d.axis] = d.to;
  return shape.numel() == 0 ? zeros(shape, dtype, x.device()) : LazyTensor();
}

IndexedMaxResult largest_of_parts(const char* op, const LazyTensor& x, const Spatial& output_size,
                                  bool indices) {
  const std::vector<Division> axes = divisions(op, x, output_size);
  LazyTensor best = without_elements(x, axes, x.dtype()), at;
  if (best.defined()) return {best, zeros(best.shape(), DType::i32, x.device())};
  best = x;
  if (indices) {
    const Shape spatial(x.shape().span().subspan(kLead));
    Shape shape(Dims::filled(x.rank(), 1));
    ops::check_countable(spatial, op);
    for (int i = kLead; i < x.rank(); ++i) shape[i] = x.shape(i);
    at = broadcast_to(reshape(iota(Shape{spatial.numel()}, 0, DType::i32, x.device()), shape), x.shape());
  }
  for (const Division& d : axes) {
    const LazyTensor parts = d.windows(best);
    if (indices)
      at = squeeze(take_along_axis(d.windows(at), argmax(parts, d.axis + 1, true), d.axis + 1), d.axis + 1);
    best = max(parts, d.axis + 1);
  }
  return {best, at};
}

}  // namespace

LazyTensor adaptive_avg_pool(const LazyTensor& x, const Spatial& output_size) {
  std::vector<Division> axes = divisions("adaptive_avg_pool", x, output_size);
  LazyTensor nothing = without_elements(x, axes, x.dtype());
  if (nothing.defined()) return nothing;
  LazyTensor y = astype(x, compute_type(x.dtype()));
  std::ranges::reverse(axes);
  for (const Division& d : axes) y = d.means(y);
  return astype(y, x.dtype());
}

LazyTensor adaptive_max_pool(const LazyTensor& x, const Spatial& output_size) {
  return largest_of_parts("adaptive_max_pool", x, output_size, false).values;
}

IndexedMaxResult adaptive_max_pool_with_indices(const LazyTensor& x, const Spatial& output_size) {
  return largest_of_parts("adaptive_max_pool_with_indices", x, output_size, true);
}

}  // namespace caldera
