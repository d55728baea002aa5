#include "ops/spatial/pooling.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/index/scatter.h"
#include "ops/spatial/adjoining_windows.h"
#include "ops/spatial/large_windows.h"
#include "ops/spatial/spatial.h"
#include "ops/spatial/windows.h"

namespace caldera {
namespace {

using windows::each;
using windows::kLead;
using windows::padded;
using windows::spatial_axes;
using windows::Windows;

struct Pool {
  int n;
  Spatial kernel, stride, padding, dilation;
  Spatial beyond;  // what the last windows need behind the padding

  Pool(const char* op, const LazyTensor& x, const Spatial& extents, const PoolOptions& options)
      : n(spatial_axes(op, x)),
        kernel(each(op, "kernel", extents, n, 1)),
        stride(options.stride.empty() ? kernel : each(op, "stride", options.stride, n, 1)),
        padding(each(op, "padding", options.padding, n, 0)),
        dilation(each(op, "dilation", options.dilation, n, 1)) {
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      if (padding[i] > kernel[i] / 2)
        throw ValueError(
            fmt::format("{}: padding {} is more than half of the kernel's {}", op, padding[i], kernel[i]));
      if (x.shape(static_cast<int>(i) + kLead) == 0)
        throw ShapeError(fmt::format("{}: {} has an empty axis, of which windows would see padding alone", op,
                                     x.shape().to_string()));
      const std::int64_t extent = x.shape(static_cast<int>(i) + kLead) + padding[i],
                         left = extent + padding[i] - dilation[i] * (kernel[i] - 1) - 1;
      const std::int64_t over = left < 0 ? 0 : left % stride[i];
      const bool another = options.ceil_mode && over != 0 && left - over + stride[i] < extent;
      beyond.push_back(another ? stride[i] - over : 0);
    }
  }
  bool reaches_beyond() const {
    return std::ranges::any_of(beyond, [](auto v) { return v > 0; });
  }
  /// As `attributes` has it.
  Pool(int axes, std::span<const std::int64_t> values) : n(axes) {
    for (Spatial* of : {&kernel, &stride, &padding, &dilation, &beyond}) {
      of->assign(values.begin(), values.begin() + n);
      values = values.subspan(static_cast<std::size_t>(n));
    }
  }
  std::vector<std::int64_t> attributes() const {
    std::vector<std::int64_t> all;
    for (const Spatial* of : {&kernel, &stride, &padding, &dilation, &beyond})
      all.insert(all.end(), of->begin(), of->end());
    return all;
  }
  /// Whether no element is in two windows.
  bool are_apart() const {
    for (std::size_t i = 0; i < kernel.size(); ++i)
      if (stride[i] <= dilation[i] * (kernel[i] - 1)) return false;
    return true;
  }
  /// x between what the windows see around it.
  LazyTensor surrounded(const LazyTensor& x, FillValue value) const {
    Spatial high = padding;
    for (std::size_t i = 0; i < high.size(); ++i) high[i] += beyond[i];
    return padded(x, padding, high, value);
  }
  /// Whether what the windows have at a place (in row-major order) is an element of x and not a margin's.
  /// Undefined where all are.
  LazyTensor inside(const LazyTensor& x, const Windows& windows, std::int64_t place) const {
    LazyTensor all;
    for (std::size_t i = kernel.size(); i-- > 0;) {
      const int axis = static_cast<int>(i) + kLead;
      const std::int64_t first = place % kernel[i] * dilation[i] - padding[i], count = windows.counts[i];
      place /= kernel[i];
      if (first >= 0 && first + (count - 1) * stride[i] < x.shape(axis)) continue;
      Shape along(Dims::filled(x.rank(), 1));
      along[axis] = count;
      const LazyTensor at = iota(along, axis, DType::i32, x.device()) * stride[i] + first;
      const LazyTensor here = logical_and(at >= 0, at < x.shape(axis));
      all = all.defined() ? logical_and(all, here) : here;
    }
    return all;
  }
  /// Which elements of what is surrounded are x's, (1, 1, spatial axes ...); undefined where all are.
  LazyTensor are_elements(const LazyTensor& x, const LazyTensor& wide) const {
    if (wide.shape() == x.shape()) return {};
    Shape shape = x.shape();
    for (int axis = 0; axis < kLead; ++axis) shape[axis] = 1;
    return surrounded(full(shape, 1, DType::boolean, x.device()), 0);
  }
  /// Where the elements of what is surrounded are in their channel, (1, 1, spatial axes ...).
  LazyTensor places(const char* op, const LazyTensor& x) const {
    Shape shape(Dims::filled(x.rank(), 1));
    std::int64_t elements = 1;
    LazyTensor all;
    for (std::size_t i = kernel.size(); i-- > 0;) {
      const int axis = static_cast<int>(i) + kLead;
      Shape along(Dims::filled(x.rank(), 1));
      along[axis] = shape[axis] = x.shape(axis) + 2 * padding[i] + beyond[i];
      if (__builtin_mul_overflow(elements, x.shape(axis), &elements) ||
          elements > std::numeric_limits<std::int32_t>::max())
        throw ShapeError(fmt::format("{}: a channel of {} has more elements than int32 counts", op,
                                     x.shape().to_string()));
      const LazyTensor own =
          (iota(along, axis, DType::i32, x.device()) - padding[i]) * (elements / x.shape(axis));
      all = all.defined() ? all + own : own;
    }
    return broadcast_to(all, shape);
  }
  /// The sums over the windows of what is surrounded already.
  LazyTensor sums(const char* op, const LazyTensor& wide) const {
    LazyTensor total;
    const Windows windows(op, wide, kernel, stride, dilation);
    if (windows::are_large(windows)) return windows::large_sums(wide, windows);
    windows.for_each(wide, [&](const LazyTensor& part) { total = total.defined() ? total + part : part; });
    return total;
  }
};

}  // namespace

namespace {

using windows::LargestOfWindows;

constexpr std::int64_t kMostPlaces = std::numeric_limits<std::int32_t>::max();

/// Largest elements, and with `indices` where they are, undefined otherwise.
LargestOfWindows largest_of_windows(const char* op, const LazyTensor& x, const Pool& pool, bool indices) {
  const LazyTensor wide = pool.surrounded(x, -std::numeric_limits<double>::infinity());
  const LazyTensor places = indices ? pool.places(op, x) : LazyTensor();
  const Windows windows(op, wide, pool.kernel, pool.stride, pool.dilation);
  if (wide.shape() == x.shape() && windows::are_adjoining(x, windows))
    return windows::adjoining_maxima(x, windows, indices);
  if (windows::are_large(windows)) {
    const LargestOfWindows all = windows::large_maxima(wide, pool.are_elements(x, wide), places, windows);
    return {all.values, indices ? broadcast_to(all.places, all.values.shape()) : LazyTensor(),
            all.are_elements};
  }
  LazyTensor best, at, found;  // whether the best is an element of x, undefined where it always is
  std::vector<LazyTensor> parts;
  if (indices) windows.for_each(places, [&](const LazyTensor& part) { parts.push_back(part); });
  std::int64_t place = 0;
  windows.for_each(wide, [&](const LazyTensor& part) {
    const LazyTensor part_at = indices ? parts[static_cast<std::size_t>(place)] : LazyTensor();
    const LazyTensor own = pool.inside(x, windows, place++);
    if (!best.defined()) {
      best = part;
      at = part_at;
      found = own;
      return;
    }
    LazyTensor replaces = logical_and(logical_or(greater(part, best), isnan(part)), logical_not(isnan(best)));
    if (found.defined()) {  // the first element of x wins against a margin, even by a tie
      const LazyTensor first = logical_not(found);
      replaces = logical_or(replaces, own.defined() ? logical_and(own, first) : first);
      found = own.defined() ? logical_or(found, own) : own;
    }
    best = where(replaces, part, best);
    if (indices) at = where(replaces, part_at, at);
  });
  return {best, indices ? broadcast_to(at, best.shape()) : LazyTensor(), found};
}

/// Where the elements of x are that maxima have come from, by channel: as many as there are windows, so that
/// gradients write no more than these.
struct Origins {
  Shape x, windows;       // (channels of all examples, elements)
  LazyTensor places;      // -1 where a window has no element of x
  LazyTensor are_inside;  // undefined where none is -1
  ops::Indices kind;

  /// vmap puts axes ahead of those that the pool knows.
  Origins(const Pool& pool, const LazyTensor& of) {
    std::int64_t lead = 1;
    Shape shape;
    for (int i = 0; i < of.rank(); ++i) {
      if (i < of.rank() - pool.n)
        lead *= of.shape(i);
      else
        shape.push_back(of.shape(i));
    }
    shape.insert(0, lead);
    shape.insert(0, 1);
    const LazyTensor known = stop_gradient(of);
    const LargestOfWindows found = largest_of_windows(
        "max_pool", of.rank() == pool.n + kLead ? known : reshape(known, shape), pool, true);
    const LazyTensor at =
        found.are_elements.defined() ? where(found.are_elements, found.places, -1) : found.places;
    x = Shape{lead, lead == 0 ? 0 : of.numel() / lead};
    windows = Shape{lead, lead == 0 ? 0 : at.numel() / lead};
    places = reshape(at, windows);
    if (found.are_elements.defined()) are_inside = places >= 0;
    kind = pool.are_apart() ? ops::Indices::distinct : ops::Indices::aligned;
  }
};

Pool pool_of(const Node& node) {
  const auto& values = node.attributes().values();
  return {static_cast<int>(values.size() / 5), values};
}

void maxima_vjp(VjpContext& c) {
  const LazyTensor& x = c.inputs[1];
  const Origins origins(pool_of(c.output.node()), x);
  const LazyTensor base = zeros(origins.x, x.dtype(), x.device());
  c.grads[1] = reshape(ops::scattered(Scatter::add, base, origins.places,
                                      reshape(c.cotangent, origins.windows), 1, origins.kind),
                       x.shape());
}
void maxima_jvp(JvpContext& c) {
  const Origins origins(pool_of(c.output.node()), c.inputs[1]);
  LazyTensor tangent = ops::gathered(reshape(c.tangents[1], origins.x), origins.places, 1, origins.kind);
  if (origins.are_inside.defined()) tangent = where(origins.are_inside, tangent, 0);
  c.tangent = reshape(tangent, c.output.shape());
}

/// Stands for its first input, the values; the second is what they are the largest elements of.
const OpDef kMaxima{.name = "window_maxima", .kind = OpClass::identity, .vjp = maxima_vjp, .jvp = maxima_jvp};

IndexedMaxResult max_pool_of(const char* op, const LazyTensor& x, const Spatial& kernel,
                             const PoolOptions& options, bool indices) {
  const Pool pool(op, x, kernel, options);
  std::int64_t elements = 1;
  for (int i = 0; i < pool.n; ++i)
    if (__builtin_mul_overflow(elements, x.shape(i + kLead), &elements)) elements = kMostPlaces + 1;
  const bool has_places = elements <= kMostPlaces;
  const LargestOfWindows found = largest_of_windows(op, has_places ? stop_gradient(x) : x, pool, indices);
  if (!has_places) return {found.values, found.places};
  return {
      ops::make(kMaxima, found.values.shape(), found.values.dtype(), {found.values, x}, pool.attributes()),
      found.places};
}

}  // namespace

LazyTensor max_pool(const LazyTensor& x, const Spatial& kernel, const PoolOptions& options) {
  return max_pool_of("max_pool", x, kernel, options, false).values;
}

IndexedMaxResult max_pool_with_indices(const LazyTensor& x, const Spatial& kernel,
                                       const PoolOptions& options) {
  return max_pool_of("max_pool_with_indices", x, kernel, options, true);
}

LazyTensor max_unpool(const LazyTensor& x, const LazyTensor& indices, const Spatial& kernel,
                      const UnpoolOptions& options) {
  const char* const op = "max_unpool";
  const int n = spatial_axes(op, x);
  ops::check_index_type(op, indices);
  if (indices.shape() != x.shape())
    throw ShapeError(fmt::format("{}: indices {} are not one for each element of {}", op,
                                 indices.shape().to_string(), x.shape().to_string()));
  const Spatial extents = each(op, "kernel", kernel, n, 1),
                stride = options.stride.empty() ? extents : each(op, "stride", options.stride, n, 1),
                padding = each(op, "padding", options.padding, n, 0);
  const bool is_given = !options.output_size.empty();
  const Spatial given = is_given ? each(op, "output_size", options.output_size, n, 1) : Spatial();
  Shape whole{x.shape(0), x.shape(1)};
  std::int64_t elements = 1, results = 1;
  for (int i = 0; i < n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t extent = x.shape(i + kLead);
    whole.push_back(is_given ? given[k] : (extent - 1) * stride[k] - 2 * padding[k] + extents[k]);
    if (whole.back() < 1)
      throw ShapeError(
          fmt::format("{}: padding {} leaves nothing of {}", op, padding[k], x.shape().to_string()));
    elements *= extent;
    results *= whole.back();
  }
  const LazyTensor base = zeros(Shape{x.shape(0), x.shape(1), results}, x.dtype(), x.device());
  const Shape flat{x.shape(0), x.shape(1), elements};
  return reshape(put_along_axis(base, reshape(indices, flat), reshape(x, flat), -1), whole);
}

LazyTensor avg_pool(const LazyTensor& x, const Spatial& kernel, const PoolOptions& options) {
  const Pool pool("avg_pool", x, kernel, options);
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  LazyTensor total = pool.sums("avg_pool", pool.surrounded(y, 0));
  if (options.divisor_override) {
    if (*options.divisor_override == 0) throw ValueError("avg_pool: divisor_override is 0");
    total = total / static_cast<double>(*options.divisor_override);
  } else if (options.count_include_pad && !pool.reaches_beyond()) {
    double size = 1;
    for (const std::int64_t extent : pool.kernel) size *= static_cast<double>(extent);
    total = total / size;
  } else {
    Shape shape = y.shape();  // of all examples and channels alike
    for (int axis = 0; axis < kLead; ++axis) shape[axis] = 1;
    const LazyTensor ones = full(shape, 1, y.dtype(), y.device());
    const LazyTensor counted = options.count_include_pad
                                   ? padded(padded(ones, pool.padding, pool.padding, 1),
                                            Spatial(pool.beyond.size(), 0), pool.beyond, 0)
                                   : pool.surrounded(ones, 0);
    total = total / pool.sums("avg_pool", counted);
  }
  return astype(total, x.dtype());
}

LazyTensor lp_pool(const LazyTensor& x, double p, const Spatial& kernel, const PoolOptions& options) {
  if (!std::isfinite(p) || p == 0)
    throw ValueError(fmt::format("lp_pool: p is {}, want a number that is finite and not 0", p));
  const int n = spatial_axes("lp_pool", x);
  for (const std::int64_t value : each("lp_pool", "padding", options.padding, n, 0)) {
    if (value != 0)
      throw ValueError(fmt::format("lp_pool: padding is {}; it takes none, pad() goes ahead", value));
  }
  for (const std::int64_t value : each("lp_pool", "dilation", options.dilation, n, 1)) {
    if (value != 1) throw ValueError(fmt::format("lp_pool: dilation is {}; it takes none", value));
  }
  double size = 1;
  for (const std::int64_t extent : each("lp_pool", "kernel", kernel, n, 1))
    size *= static_cast<double>(extent);
  const LazyTensor powers = pow(astype(x, compute_type(x.dtype())), p);
  const LazyTensor means =
      avg_pool(powers, kernel, {.stride = options.stride, .ceil_mode = options.ceil_mode});
  return astype(pow(means * size, 1 / p), x.dtype());
}

}  // namespace caldera
