#include "ops/elementwise/clip.h"

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/type_info.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::real_function;

/// `low` where x is below it: of a bound that is NaN nothing is left.
LazyTensor not_below(const LazyTensor& x, const LazyTensor& low) {
  return is_floating(x.dtype()) ? where(x >= low, x, where(isnan(x), x, low)) : where(x >= low, x, low);
}
LazyTensor not_above(const LazyTensor& x, const LazyTensor& high) {
  return is_floating(x.dtype()) ? where(x <= high, x, where(isnan(x), x, high)) : where(x <= high, x, high);
}

/// An integer beyond an integer type as the nearest that it holds.
LazyTensor saturated(const LazyTensor& bound, DType type) {
  if (ops::holds(type, bound) || is_floating(bound.dtype())) return bound;
  return bound.node().attributes()[0] < 0 ? facts(type).lowest : facts(type).highest;
}

/// Of a number and NaN the number.
template <LazyTensor (*Choose)(const LazyTensor&, const LazyTensor&)>
LazyTensor number_of(const LazyTensor& a, const LazyTensor& b) {
  const LazyTensor chosen = Choose(a, b);
  return is_floating(chosen.dtype()) ? where(isnan(a), b, where(isnan(b), a, chosen)) : chosen;
}

}  // namespace

LazyTensor clip(const LazyTensor& x, const std::optional<LazyTensor>& low,
                const std::optional<LazyTensor>& high) {
  LazyTensor y = x;
  for (const auto* bound : {&low, &high}) {
    // A number between tensors is one of their type, and is where they do.
    if (!*bound || (*bound)->node().is_scalar_leaf()) continue;
    y = ops::anchored(ops::as_held_operand("clip", y, ops::dtype_beside(y, **bound)), (*bound)->device());
  }
  ops::check_domain("clip", ScalarDomain::numeric, y.dtype());
  if (low) {
    broadcast_shapes(y.shape(), low->shape(), "clip");
    y = not_below(y, saturated(*low, y.dtype()));
  }
  if (high) {
    broadcast_shapes(y.shape(), high->shape(), "clip");
    y = not_above(y, saturated(*high, y.dtype()));
  }
  return y;
}

LazyTensor fmax(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmax", a, b, number_of<maximum>);
}
LazyTensor fmin(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmin", a, b, number_of<minimum>);
}

LazyTensor nan_to_num(const LazyTensor& x, double nan, std::optional<double> positive_infinity,
                      std::optional<double> negative_infinity) {
  ops::check_domain("nan_to_num", ScalarDomain::numeric, x.dtype());
  if (!is_floating(x.dtype())) return x;
  const double largest = finfo(x.dtype()).max;
  const double high = positive_infinity.value_or(largest);
  const double low = negative_infinity.value_or(-largest);
  return where(isnan(x), nan, where(x == kInfinity, high, where(x == -kInfinity, low, x)));
}

LazyTensor lerp(const LazyTensor& start, const LazyTensor& end, const LazyTensor& weight) {
  const LazyTensor from = real_function("lerp", start, end, [](const auto& a, const auto&) { return a; });
  return real_function("lerp", from, weight, [&](const LazyTensor& a, const LazyTensor& w) {
    const LazyTensor b = ops::as_operand(end, a.dtype());
    const LazyTensor step = b - a;
    return where(abs(w) < 0.5, a + w * step, b - step * (1 - w));
  });
}

}  // namespace caldera
