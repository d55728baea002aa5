#include "ops/reduce/nan_reductions.h"

#include <fmt/core.h>

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/root_without_kink.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/mean.h"
#include "ops/reduce/statistics.h"

namespace caldera {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr double kWorst = std::numeric_limits<double>::infinity();

LazyTensor without_nan(const LazyTensor& x, double instead) {
  return is_floating(x.dtype()) ? where(isnan(x), full_like(x, instead), x) : x;
}

/// How many elements are not NaN, in the type that x is computed with.
LazyTensor counted(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return sum(astype(logical_not(isnan(x)), x.dtype()), axes, keepdims);
}

LazyTensor variance(const char* op, const LazyTensor& x, const Axes& axes, double correction, bool keepdims) {
  if (!is_floating(x.dtype()))
    throw DTypeError(fmt::format("{}: {} has no variance; cast it to a floating type", op, name(x.dtype())));
  ops::resolve_axes(axes, x.shape(), op);
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  const LazyTensor middle = sum(without_nan(y, 0), axes, true) / counted(y, axes, true);
  const LazyTensor squares = square(where(isnan(y), zeros_like(y), y - middle));
  const LazyTensor free = counted(y, axes, keepdims) - correction;
  const LazyTensor enough = free > 0;
  const LazyTensor total = sum(squares, axes, keepdims) / where(enough, free, ones_like(free));
  return where(enough, total, full_like(total, kMissing));
}

/// The extremum of what is left where NaN became the infinity that never is one.
LazyTensor extremum_of_numbers(LazyTensor (*of)(const LazyTensor&, const Axes&, bool), const char* op,
                               const LazyTensor& x, double worst, const Axes& axes, bool keepdims) {
  ops::check_domain(op, ScalarDomain::numeric, x.dtype());
  for (const std::int64_t at : ops::resolve_axes(axes, x.shape(), op)) {
    if (x.shape(static_cast<int>(at)) == 0)
      throw ShapeError(fmt::format("{}: {} has no element along axis {}", op, x.shape().to_string(), at));
  }
  if (!is_floating(x.dtype())) return of(x, axes, keepdims);
  const LazyTensor best = of(without_nan(x, worst), axes, keepdims);
  const LazyTensor none = all(isnan(x), axes, keepdims);
  return where(none, full_like(best, kMissing), best);
}

}  // namespace

LazyTensor nansum(const LazyTensor& x, const Axes& axes, bool keepdims) {
  ops::resolve_axes(axes, x.shape(), "nansum");
  return sum(without_nan(x, 0), axes, keepdims);
}

LazyTensor nanprod(const LazyTensor& x, const Axes& axes, bool keepdims) {
  ops::resolve_axes(axes, x.shape(), "nanprod");
  return prod(without_nan(x, 1), axes, keepdims);
}

LazyTensor nanmean(const LazyTensor& x, const Axes& axes, bool keepdims) {
  ops::resolve_axes(axes, x.shape(), "nanmean");
  if (!is_floating(x.dtype())) return mean(x, axes, keepdims);
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  return astype(sum(without_nan(y, 0), axes, keepdims) / counted(y, axes, keepdims), x.dtype());
}

LazyTensor nanvar(const LazyTensor& x, const Axes& axes, double correction, bool keepdims) {
  return astype(variance("nanvar", x, axes, correction, keepdims), x.dtype());
}

LazyTensor nanstd(const LazyTensor& x, const Axes& axes, double correction, bool keepdims) {
  const LazyTensor squared = variance("nanstd", x, axes, correction, keepdims);
  return astype(ops::root_without_kink(squared, [](const LazyTensor& t) { return sqrt(t); }), x.dtype());
}

LazyTensor nanmax(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return extremum_of_numbers(caldera::max, "nanmax", x, -kWorst, axes, keepdims);
}
LazyTensor nanmin(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return extremum_of_numbers(caldera::min, "nanmin", x, kWorst, axes, keepdims);
}

}  // namespace caldera
