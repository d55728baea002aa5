#include "ops/reduce/indexed_extrema.h"

#include <fmt/core.h>

#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

void check(const char* op, const LazyTensor& x, int axis, bool needs_elements) {
  ops::check_domain(op, ScalarDomain::numeric, x.dtype());
  for (const std::int64_t at : ops::resolve_axes(axis, x.shape(), op)) {
    if (needs_elements && x.shape(static_cast<int>(at)) == 0)
      throw ShapeError(fmt::format("{}: {} has no element along axis {}", op, x.shape().to_string(), axis));
  }
}

/// `values` are the best elements of x so far. Each is where the last one stands that was better than all
/// before it.
LazyTensor places_of_best(const LazyTensor& x, const LazyTensor& values, int axis) {
  if (x.rank() == 0) return zeros(Shape{}, DType::i32, x.device());
  const int at = x.shape().normalize_axis(axis, "cummax");
  const std::int64_t n = x.shape(at);
  if (n < 2) return iota(x.shape(), at, DType::i32, x.device());
  const LazyTensor place = iota(x.shape(), at, DType::i32, x.device());
  const LazyTensor before = slice(values, at, 0, n - 1), after = slice(values, at, 1, n);
  LazyTensor changes = after != before;
  if (is_floating(x.dtype())) changes = logical_and(changes, logical_not(isnan(before)));
  const LazyTensor later = slice(place, at, 1, n);
  const LazyTensor found = where(changes, later, zeros_like(later));
  return cummax(concatenate({slice(place, at, 0, 1), found}, at), at);
}

}  // namespace

IndexedResult max_with_indices(const LazyTensor& x, AxisIndex axis, bool keepdims) {
  check("max_with_indices", x, axis, true);
  return {max(x, axis, keepdims), argmax(x, axis, keepdims)};
}
IndexedResult min_with_indices(const LazyTensor& x, AxisIndex axis, bool keepdims) {
  check("min_with_indices", x, axis, true);
  return {min(x, axis, keepdims), argmin(x, axis, keepdims)};
}

IndexedResult cummax_with_indices(const LazyTensor& x, AxisIndex axis) {
  check("cummax_with_indices", x, axis, false);
  const LazyTensor values = cummax(x, axis);
  return {values, places_of_best(stop_gradient(x), stop_gradient(values), axis)};
}
IndexedResult cummin_with_indices(const LazyTensor& x, AxisIndex axis) {
  check("cummin_with_indices", x, axis, false);
  const LazyTensor values = cummin(x, axis);
  return {values, places_of_best(stop_gradient(x), stop_gradient(values), axis)};
}

MinMaxResult aminmax(const LazyTensor& x, const Axes& axes, bool keepdims) {
  ops::check_domain("aminmax", ScalarDomain::numeric, x.dtype());
  for (const std::int64_t at : ops::resolve_axes(axes, x.shape(), "aminmax")) {
    if (x.shape(static_cast<int>(at)) == 0)
      throw ShapeError(fmt::format("aminmax: {} has no element along axis {}", x.shape().to_string(), at));
  }
  return {amin(x, axes, keepdims), amax(x, axes, keepdims)};
}

}  // namespace caldera
