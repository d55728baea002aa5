#include "ops/analysis/closeness.h"

#include <fmt/core.h>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/sign.h"
#include "ops/reduce/statistics.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

/// |a - b|, which is exact before it is rounded to the type.
LazyTensor distance_of_integers(const LazyTensor& a, const LazyTensor& b, DType type) {
  const LazyTensor wide_a = astype(a, DType::i64), wide_b = astype(b, DType::i64);
  const LazyTensor wrapped = maximum(wide_a, wide_b) - minimum(wide_a, wide_b);
  const LazyTensor real = astype(wrapped, type);
  return where(wrapped < 0, real + 0x1p64, real);
}

LazyTensor are_close(const char* op, const LazyTensor& a, const LazyTensor& b, double rtol, double atol,
                     bool equal_nan) {
  if (!(rtol >= 0) || !(atol >= 0))
    throw ValueError(fmt::format("{}: rtol is {} and atol {}, want 0 or more", op, rtol, atol));
  return ops::numeric_function(op, a, b, [&](const LazyTensor& given, const LazyTensor& other) {
    const LazyTensor x = stop_gradient(given), y = stop_gradient(other);
    const LazyTensor same = x == y;
    const DType type = compute_type(ops::real_type(x.dtype()));
    const LazyTensor off =
        is_floating(x.dtype()) ? abs(astype(x, type) - astype(y, type)) : distance_of_integers(x, y, type);
    const LazyTensor within = logical_and(isfinite(off), off <= atol + rtol * abs(astype(y, type)));
    const LazyTensor close = logical_or(same, within);
    return equal_nan && is_floating(x.dtype()) ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
  });
}

}  // namespace

LazyTensor isclose(const LazyTensor& a, const LazyTensor& b, double rtol, double atol, bool equal_nan) {
  return are_close("isclose", a, b, rtol, atol, equal_nan);
}

LazyTensor allclose(const LazyTensor& a, const LazyTensor& b, double rtol, double atol, bool equal_nan) {
  return all(are_close("allclose", a, b, rtol, atol, equal_nan));
}

LazyTensor isin(const LazyTensor& x, const LazyTensor& values, bool invert) {
  const DType type = ops::common_type(x, values);
  const LazyTensor wanted = stop_gradient(
      ops::anchored(ops::as_held_operand("isin", x, compute_type(type)), ops::device_of({x, values})));
  const LazyTensor given = stop_gradient(
      ops::anchored(ops::as_held_operand("isin", values, compute_type(type)), ops::device_of({x, values})));
  const LazyTensor flat = reshape(given, Shape{given.numel()});
  constexpr std::int64_t kCompared = 32;
  LazyTensor found;
  if (flat.numel() <= kCompared || type == DType::boolean) {
    const LazyTensor rows = reshape(wanted, Shape{wanted.numel(), 1});
    found = reshape(any(equal(rows, flat), -1), wanted.shape());
  } else {
    const LazyTensor ordered = sort(flat);
    const LazyTensor at = minimum(searchsorted(ordered, wanted), ordered.numel() - 1);
    found = take(ordered, at) == wanted;
  }
  return invert ? logical_not(found) : found;
}

}  // namespace caldera
