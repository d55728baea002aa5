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
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/shape/repetition.h"
#include "ops/spatial/adaptive_pooling.h"
#include "ops/spatial/cubic_weight.h"
#include "ops/spatial/spatial.h"

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

/// The elements of x that each of the result is a sum of, and their weights.
struct Taps {
  std::vector<Indices> indices;              // [tap][element]
  std::vector<std::vector<double>> weights;  // the same

  explicit Taps(std::size_t count) : indices(count), weights(count) {}
  void push(std::size_t tap, double index, double weight, const Resampling& r) {
    indices[tap].push_back(
        static_cast<std::int32_t>(std::clamp(index, 0.0, static_cast<double>(r.from - 1))));
    weights[tap].push_back(weight);
  }
};

/// Many taps are one gather, of (elements, taps).
constexpr std::size_t kFewTaps = 4;

LazyTensor combined(const LazyTensor& x, const Resampling& r, const Taps& taps) {
  const std::size_t count = taps.indices.size(), elements = taps.indices[0].size();
  if (count <= kFewTaps) {
    LazyTensor total;
    for (std::size_t tap = 0; tap < count; ++tap) {
      const LazyTensor own = selected(x, r.axis, taps.indices[tap]) * along(taps.weights[tap], x, r.axis);
      total = total.defined() ? total + own : own;
    }
    return total;
  }
  Indices all;
  std::vector<double> weights;
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t tap = 0; tap < count; ++tap) {
      all.push_back(taps.indices[tap][i]);
      weights.push_back(taps.weights[tap][i]);
    }
  }
  const auto wide = static_cast<std::int64_t>(count);
  const LazyTensor parts = take(x, host_leaf<std::int32_t>(all, Shape{r.to, wide}, x.device()), r.axis);
  LazyTensor factors = along(weights, x, r.axis);
  Shape shape = factors.shape();
  shape[r.axis] = r.to;
  shape.insert(r.axis + 1, wide);
  return sum(parts * reshape(factors, shape), r.axis + 1);
}

/// Where an element of the result is in x. Unlimited: it may be ahead of the first element.
double place_of(std::int64_t i, const Resampling& r, bool align_corners) {
  const auto place = static_cast<double>(i);
  return align_corners ? place * r.ratio : (place + 0.5) * r.ratio - 0.5;
}

LazyTensor linear(const LazyTensor& x, const Resampling& r, bool align_corners) {
  if (r.from == r.to) return x;  // PyTorch's rule even where the factor says otherwise
  Taps taps(2);
  bool between = false;
  for (std::int64_t i = 0; i < r.to; ++i) {
    const double at = std::max(0.0, place_of(i, r, align_corners));
    const double index = std::min(std::floor(at), static_cast<double>(r.from - 1));
    const double weight = std::clamp(at - index, 0.0, 1.0);
    taps.push(0, index, 1 - weight, r);
    taps.push(1, index + 1, weight, r);
    between = between || (weight != 0 && taps.indices[0].back() != taps.indices[1].back());
  }
  return between ? combined(x, r, taps) : selected(x, r.axis, taps.indices[0]);
}

LazyTensor cubic(const LazyTensor& x, const Resampling& r, bool align_corners) {
  Taps taps(4);
  for (std::int64_t i = 0; i < r.to; ++i) {
    const double at = place_of(i, r, align_corners), index = std::floor(at);
    for (int tap = 0; tap < 4; ++tap)
      taps.push(static_cast<std::size_t>(tap), index - 1 + tap, cubic_weight(at - index + 1 - tap, -0.75), r);
  }
  return combined(x, r, taps);
}

/// Pillow's resampling: the function of linear or cubic interpolation, as wide as a step of the result.
LazyTensor smoothed(const LazyTensor& x, const Resampling& r, bool is_cubic) {
  const double stretch = std::max(r.ratio, 1.0), support = (is_cubic ? 2 : 1) * stretch;
  const auto first = [&](std::int64_t i) {
    return std::max(0.0, std::trunc(r.ratio * (static_cast<double>(i) + 0.5) - support + 0.5));
  };
  const auto behind = [&](std::int64_t i) {
    return std::min(static_cast<double>(r.from),
                    std::trunc(r.ratio * (static_cast<double>(i) + 0.5) + support + 0.5));
  };
  double most = 1;
  for (std::int64_t i = 0; i < r.to; ++i) most = std::max(most, behind(i) - first(i));
  Taps taps(static_cast<std::size_t>(most));
  for (std::int64_t i = 0; i < r.to; ++i) {
    const double center = r.ratio * (static_cast<double>(i) + 0.5), count = behind(i) - first(i);
    std::vector<double> weights;
    double total = 0;
    for (double j = 0; j < most; ++j) {
      const double away = (j + first(i) - center + 0.5) / stretch;
      const double weight = is_cubic ? cubic_weight(away, -0.5) : std::max(0.0, 1 - std::abs(away));
      weights.push_back(j < count ? weight : 0);
      total += weights.back();
    }
    for (std::size_t j = 0; j < weights.size(); ++j)
      taps.push(j, first(i) + static_cast<double>(j), total == 0 ? 0 : weights[j] / total, r);
  }
  return combined(x, r, taps);
}

}  // namespace

LazyTensor interpolate(const LazyTensor& x, const InterpolateOptions& options) {
  ops::check_domain(kName, ScalarDomain::floating, x.dtype());
  const bool is_smooth = options.mode == Interpolation::linear || options.mode == Interpolation::cubic;
  if (options.align_corners && !is_smooth)
    throw ValueError(fmt::format("{}: align_corners goes with linear and cubic interpolation only", kName));
  if (options.antialias && !is_smooth)
    throw ValueError(fmt::format("{}: antialias goes with linear and cubic interpolation only", kName));
  const std::vector<Resampling> axes = resamplings(x, options);
  if (options.mode == Interpolation::area) {
    Spatial size;
    for (const Resampling& r : axes) size.push_back(r.to);
    return adaptive_avg_pool(x, size);
  }
  if (!is_smooth) {
    LazyTensor y = x;
    for (const Resampling& r : axes) y = nearest(y, r, options.mode == Interpolation::nearest ? 0 : 0.5);
    return y;
  }
  LazyTensor y = astype(x, compute_type(x.dtype()));
  for (const Resampling& r : axes) {
    const bool is_cubic = options.mode == Interpolation::cubic;
    if (options.antialias)
      y = smoothed(y, r, is_cubic);
    else
      y = is_cubic ? cubic(y, r, options.align_corners) : linear(y, r, options.align_corners);
  }
  return astype(y, x.dtype());
}

}  // namespace caldera
