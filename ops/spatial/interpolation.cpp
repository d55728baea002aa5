#include "ops/spatial/interpolation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "engine/graph/data_leaf.h"
#include "ops/core/cast.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/shape/repetition.h"

namespace caldera {
namespace {

constexpr int kLeadingAxes = 2;  // examples and channels come first
constexpr const char* kName = "interpolate";

using Indices = std::vector<std::int32_t>;

/// How an axis becomes another: both extents, and how far apart neighbours of the result are in x.
struct Resampling {
  int axis;
  std::int64_t from, to;
  double ratio;
};

template <class T>
T setting(const std::vector<T>& values, int i) {
  return values[values.size() == 1 ? 0 : static_cast<std::size_t>(i)];
}

std::vector<Resampling> resamplings(const LazyTensor& x, const InterpolateOptions& options) {
  const int n = x.rank() - kLeadingAxes;
  if (n < 1 || n > 3)
    throw ShapeError(fmt::format("{}: {} is not (examples, channels) and 1 to 3 spatial axes", kName,
                                 x.shape().to_string()));
  const bool by_size = !options.size.empty();
  if (by_size != options.scale_factor.empty())
    throw ValueError(
        fmt::format("{}: want either size or scale_factor, got {}", kName, by_size ? "both" : "neither"));
  const std::size_t given = by_size ? options.size.size() : options.scale_factor.size();
  if (given != 1 && given != static_cast<std::size_t>(n))
    throw ValueError(fmt::format("{}: {} has {} values for {} spatial axes", kName,
                                 by_size ? "size" : "scale_factor", given, n));
  std::vector<Resampling> out;
  for (int i = 0; i < n; ++i) {
    const std::int64_t from = x.shape(kLeadingAxes + i);
    if (from == 0) throw ShapeError(fmt::format("{}: {} is empty", kName, x.shape().to_string()));
    const double factor = by_size ? 1 : setting(options.scale_factor, i);
    const double extent = by_size ? static_cast<double>(setting(options.size, i))
                                  : std::floor(static_cast<double>(from) * factor);
    if (!(extent >= 1 && extent <= std::numeric_limits<std::int32_t>::max()))
      throw ValueError(fmt::format("{}: spatial axis {} of {} would have {} elements", kName, i,
                                   x.shape().to_string(), extent));
    const auto to = static_cast<std::int64_t>(extent);
    double ratio = static_cast<double>(from) / static_cast<double>(to);
    if (!by_size && !options.recompute_scale_factor) ratio = 1 / factor;
    if (options.align_corners)
      ratio = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
    out.push_back({kLeadingAxes + i, from, to, ratio});
  }
  return out;
}

/// x[indices] along an axis. As a view where the indices are evenly spaced, and without indices where each
/// is repeated as often as the others: what factors that are whole numbers, or one over such, come to.
LazyTensor selected(const LazyTensor& x, int axis, const Indices& indices) {
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t first = indices.front(), step = count > 1 ? indices[1] - first : 1;
  const auto follows = [&](auto rule) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (indices[static_cast<std::size_t>(i)] != rule(i)) return false;
    }
    return true;
  };
  if (step > 0 && follows([&](std::int64_t i) { return first + i * step; }))
    return slice(x, axis, first, first + (count - 1) * step + 1, step);
  const std::int64_t times = count / x.shape(axis);
  if (times * x.shape(axis) == count && follows([&](std::int64_t i) { return i / times; }))
    return repeat(x, times, axis);
  return take(x, host_leaf<std::int32_t>(indices, Shape{count}, x.device()), axis);
}

LazyTensor nearest(const LazyTensor& x, const Resampling& r, double offset) {
  Indices indices;
  for (std::int64_t i = 0; i < r.to; ++i) {
    const double place = std::floor((static_cast<double>(i) + offset) * r.ratio);
    indices.push_back(static_cast<std::int32_t>(std::min(place, static_cast<double>(r.from - 1))));
  }
  return selected(x, r.axis, indices);
}

/// Numbers along an axis of a tensor of this rank.
LazyTensor along(const std::vector<double>& values, const LazyTensor& x, int axis) {
  Shape shape(Dims::filled(x.rank(), 1));
  shape[axis] = static_cast<std::int64_t>(values.size());
  if (x.dtype() == DType::f64) return host_leaf<double>(values, shape, x.device());
  return host_leaf<float>(std::vector<float>(values.begin(), values.end()), shape, x.device());
}

LazyTensor linear(const LazyTensor& x, const Resampling& r, bool align_corners) {
  if (r.from == r.to) return x;  // PyTorch's rule even where the factor says otherwise
  Indices left, right;
  std::vector<double> near, far;  // the weights of both
  bool between = false;
  for (std::int64_t i = 0; i < r.to; ++i) {
    const auto place = static_cast<double>(i);
    const double at = align_corners ? place * r.ratio : std::max(0.0, (place + 0.5) * r.ratio - 0.5);
    const double index = std::min(std::floor(at), static_cast<double>(r.from - 1));
    const double weight = std::clamp(at - index, 0.0, 1.0);
    left.push_back(static_cast<std::int32_t>(index));
    right.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(left.back() + 1, r.from - 1)));
    near.push_back(1 - weight);
    far.push_back(weight);
    between = between || (weight != 0 && left.back() != right.back());
  }
  if (!between) return selected(x, r.axis, left);
  return selected(x, r.axis, left) * along(near, x, r.axis) +
         selected(x, r.axis, right) * along(far, x, r.axis);
}

}  // namespace

LazyTensor interpolate(const LazyTensor& x, const InterpolateOptions& options) {
  ops::check_domain(kName, ScalarDomain::floating, x.dtype());
  if (options.align_corners && options.mode != Interpolation::linear)
    throw ValueError(fmt::format("{}: align_corners goes with linear interpolation only", kName));
  const std::vector<Resampling> axes = resamplings(x, options);
  if (options.mode != Interpolation::linear) {
    LazyTensor y = x;
    for (const Resampling& r : axes) y = nearest(y, r, options.mode == Interpolation::nearest ? 0 : 0.5);
    return y;
  }
  LazyTensor y = astype(x, compute_type(x.dtype()));
  for (const Resampling& r : axes) y = linear(y, r, options.align_corners);
  return astype(y, x.dtype());
}

}  // namespace caldera
