#include "ops/groups/histogram.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/rounding.h"
#include "ops/reduce/extrema.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

constexpr std::int64_t kMostBins = std::numeric_limits<std::int32_t>::max();

/// What each element counts, as a vector.
LazyTensor counted(const char* op, const LazyTensor& x, const LazyTensor& weight, DType otherwise) {
  const Shape flat{x.numel()};
  if (!weight.defined()) return ones(flat, otherwise, x.device());
  if (weight.shape() != x.shape())
    throw ShapeError(fmt::format("{}: weights {} are not one for each element of {}", op,
                                 weight.shape().to_string(), x.shape().to_string()));
  ops::check_domain(op, ScalarDomain::numeric, weight.dtype());
  return reshape(ops::anchored(weight, x.device()), flat);
}

void check_bins(const char* op, std::int64_t bins) {
  if (bins < 1 || bins > kMostBins) throw ValueError(fmt::format("{}: {} bins, want 1 or more", op, bins));
}

/// Intervals of one width.
struct Bins {
  std::int64_t count;
  LazyTensor low, high;  // rank 0

  /// Without a range from the least to the largest element. Where both ends are equal they go `margin` to
  /// either side.
  Bins(const char* op, const LazyTensor& x, std::int64_t bins,
       const std::optional<std::pair<double, double>>& range, double margin)
      : count(bins) {
    const auto [from, to] = range.value_or(std::pair(0.0, 0.0));
    if (!std::isfinite(from) || !std::isfinite(to) || from > to)
      throw ValueError(fmt::format("{}: a range from {} to {}", op, from, to));
    const bool is_found = !range && x.numel() > 0;
    low = is_found ? min(x) : full(Shape{}, from, x.dtype(), x.device());
    high = is_found ? max(x) : full(Shape{}, to, x.dtype(), x.device());
    const LazyTensor single = equal(low, high);
    low = where(single, low - margin, low);
    high = where(single, high + margin, high);
  }
  /// Which bin each element of the vector x is in, -1 for none.
  LazyTensor of(const LazyTensor& x) const {
    const LazyTensor inside = logical_and(x >= low, x <= high);
    const LazyTensor at = floor((where(inside, x, low) - low) * static_cast<double>(count) / (high - low));
    return where(inside, minimum(astype(at, DType::i32), static_cast<int>(count - 1)), -1);
  }
  /// of(), and where rounding puts an element next to the bin that edges() says, that one.
  LazyTensor between(const LazyTensor& x, const LazyTensor& ends) const {
    const LazyTensor at = of(x), own = maximum(at, 0), next = own + 1;
    const LazyTensor below = x < take(ends, own),
                     above = logical_and(next < static_cast<int>(count), x >= take(ends, next));
    return where(at < 0, at, where(below, own - 1, where(above, next, own)));
  }
  /// count + 1 of them, the last as given.
  LazyTensor edges() const {
    const LazyTensor i = iota(Shape{count + 1}, 0, low.dtype(), low.device());
    return where(i == static_cast<double>(count), high,
                 low + i * ((high - low) / static_cast<double>(count)));
  }
};

LazyTensor totals(const LazyTensor& which, const LazyTensor& counts, std::int64_t bins) {
  return scatter_add(zeros(Shape{bins}, counts.dtype(), counts.device()), which, counts);
}

LazyTensor as_vector(const LazyTensor& x) {
  return astype(reshape(x, Shape{x.numel()}), compute_type(x.dtype()));
}

HistogramResult finished(const LazyTensor& hist, const LazyTensor& edges, bool density, DType type) {
  LazyTensor shown = hist;
  if (density) {
    const std::int64_t n = hist.numel();
    shown = hist / (sum(hist) * (slice(edges, 0, 1, n + 1) - slice(edges, 0, 0, n)));
  }
  return {astype(shown, type), astype(edges, type)};
}

}  // namespace

LazyTensor bincount(const LazyTensor& x, const BincountOptions& options) {
  const char* const op = "bincount";
  ops::check_index_type(op, x);
  if (x.rank() != 1) throw ShapeError(fmt::format("{}: {} is not of one axis", op, x.shape().to_string()));
  if (options.minlength < 0) throw ValueError(fmt::format("{}: minlength is {}", op, options.minlength));
  const LazyTensor counts = counted(op, x, options.weights, DType::i32);
  std::int64_t length = options.minlength;
  if (options.length) {
    length = *options.length;
    if (length < options.minlength || length > kMostBins)
      throw ValueError(fmt::format("{}: length is {}, minlength {}", op, length, options.minlength));
  } else if (x.numel() > 0) {
    const LazyTensor least = min(x), most = max(x);
    eval({least, most});
    if (least.item<std::int64_t>() < 0)
      throw ValueError(fmt::format("{}: an element is {}, want 0 or more", op, least.item<std::int64_t>()));
    if (most.item<std::int64_t>() >= kMostBins)
      throw ValueError(
          fmt::format("{}: an element is {}, want less than 2^31 - 1", op, most.item<std::int64_t>()));
    length = std::max(length, most.item<std::int64_t>() + 1);
  }
  if (length == 0) return zeros(Shape{0}, counts.dtype(), counts.device());
  return scatter_add(zeros(Shape{length}, counts.dtype(), counts.device()), x, counts);
}

LazyTensor histc(const LazyTensor& x, std::int64_t bins, double low, double high) {
  ops::check_domain("histc", ScalarDomain::floating, x.dtype());
  check_bins("histc", bins);
  const LazyTensor flat = as_vector(x);
  std::optional<std::pair<double, double>> range;
  if (low != high || !std::isfinite(low)) range = {low, high};
  const Bins intervals("histc", flat, bins, range, 1);
  return astype(totals(intervals.of(flat), ones_like(flat), bins), x.dtype());
}

HistogramResult histogram(const LazyTensor& x, std::int64_t bins, const HistogramOptions& options) {
  const char* const op = "histogram";
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  check_bins(op, bins);
  const LazyTensor flat = as_vector(x);
  const Bins intervals(op, flat, bins, options.range, 0.5);
  const LazyTensor edges = intervals.edges();
  const LazyTensor counts = astype(counted(op, x, options.weight, x.dtype()), flat.dtype());
  return finished(totals(intervals.between(flat, edges), counts, bins), edges, options.density, x.dtype());
}

HistogramResult histogram(const LazyTensor& x, const LazyTensor& bin_edges, const HistogramOptions& options) {
  const char* const op = "histogram";
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  ops::check_domain(op, ScalarDomain::floating, bin_edges.dtype());
  if (bin_edges.rank() != 1 || bin_edges.shape(0) < 2)
    throw ShapeError(
        fmt::format("{}: edges {} are not two or more along one axis", op, bin_edges.shape().to_string()));
  if (options.range) throw ValueError(fmt::format("{}: a range and edges exclude each other", op));
  const LazyTensor flat = as_vector(x);
  const LazyTensor edges = astype(bin_edges, flat.dtype());
  const std::int64_t bins = edges.shape(0) - 1;
  const LazyTensor last = slice(edges, 0, bins, bins + 1);
  const LazyTensor found = searchsorted(edges, flat, true) - 1;  // the last edge and what is beyond: bins
  const LazyTensor which = where(equal(flat, last), static_cast<int>(bins - 1), found);
  const LazyTensor counts = astype(counted(op, x, options.weight, x.dtype()), flat.dtype());
  return finished(totals(which, counts, bins), edges, options.density, x.dtype());
}

}  // namespace caldera
