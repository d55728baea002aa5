#include "ops/sort/sorting.h"

#include <fmt/core.h>

#include <bit>

#include "ops/core/along_axis.h"
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
#include "ops/index/scatter.h"
#include "ops/sort/rows.h"

namespace caldera {
namespace {

using ops::positions_of;
using ops::Rows;

LazyTensor no_positions(const Shape& shape, Device device) { return zeros(shape, DType::i32, device); }

/// a < b where NaN is the largest.
LazyTensor is_less(const LazyTensor& a, const LazyTensor& b) {
  if (!is_floating(a.dtype())) return a < b;
  return logical_or(a < b, logical_and(isnan(b), logical_not(isnan(a))));
}

/// Sequences up to this long are searched by counting.
constexpr std::int64_t kCounted = 64;

/// For every value (rows, m) how many of the first elements of its sequence (rows or 1, n) precede it.
template <class Precedes>
LazyTensor preceding(const LazyTensor& sorted, const LazyTensor& values, Precedes precedes) {
  const std::int64_t n = sorted.shape(1);
  if (n <= kCounted) {
    return sum(astype(precedes(expand_dims(sorted, 1), expand_dims(values, 2)), DType::i32), -1);
  }
  const LazyTensor all = reshape(sorted, Shape{sorted.numel()});
  LazyTensor found = zeros(values.shape(), DType::i32, values.device());
  const LazyTensor first = iota(Shape{sorted.shape(0), 1}, 0, DType::i32, values.device()) * n;
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n))); step > 0;
       step /= 2) {
    const LazyTensor next = found + step;
    const LazyTensor probe = take(all, minimum(next - 1, n - 1) + first, 0);
    found = where(logical_and(next <= n, precedes(probe, values)), next, found);
  }
  return found;
}

/// The sequences of searchsorted() in the order that `sorter` gives, if there is one.
LazyTensor in_order(const LazyTensor& sequence, const LazyTensor& sorter) {
  if (!sorter.defined()) return sequence;
  if (!is_integral(sorter.dtype()))
    throw DTypeError(fmt::format("searchsorted: sorter is {}, want integers", name(sorter.dtype())));
  if (sorter.shape() != sequence.shape() || sequence.rank() == 0)
    throw ShapeError(fmt::format("searchsorted: sorter {} is not one position for each element of {}",
                                 sorter.shape().to_string(), sequence.shape().to_string()));
  return take_along_axis(sequence, sorter, -1);
}

/// (rows, last axis).
LazyTensor as_rows(const LazyTensor& x, std::int64_t rows) {
  return reshape(x, Shape{rows, x.numel() / rows});
}

}  // namespace

LazyTensor sort(const LazyTensor& x, AxisIndex axis, bool descending) {
  return ops::along_axis("sort", x, axis, [&](const LazyTensor& given, int at) {
    const Rows rows(given, at, "sort");
    return rows.empty() ? given : rows.restored(rows.at(positions_of(rows, descending, rows.length())));
  });
}

LazyTensor argsort(const LazyTensor& x, AxisIndex axis, bool descending) {
  return ops::along_axis("argsort", x, axis, [&](const LazyTensor& given, int at) {
    const Rows rows(given, at, "argsort");
    return rows.empty() ? no_positions(given.shape(), given.device())
                        : rows.restored(positions_of(rows, descending, rows.length()));
  });
}

TopK topk(const LazyTensor& x, std::int64_t k, AxisIndex axis, bool largest) {
  if (x.rank() == 0 && (axis == 0 || axis == -1) && k == 1) return {x, no_positions(Shape{}, x.device())};
  ops::check_domain("topk", ScalarDomain::numeric, x.dtype());
  const Rows rows(x, axis, "topk");
  if (k < 0 || k > rows.length()) {
    throw ValueError(
        fmt::format("topk: k = {} of the {} elements along axis {} of {}; it must be from 0 to {}", k,
                    rows.length(), axis, x.shape().to_string(), rows.length()));
  }
  if (rows.empty() || k == 0) {
    const LazyTensor values = slice(x, axis, 0, k);
    return {values, no_positions(values.shape(), x.device())};
  }
  const LazyTensor positions = positions_of(rows, largest, k);
  return {rows.restored(rows.at(positions)), rows.restored(positions)};
}

LazyTensor searchsorted(const LazyTensor& given, const LazyTensor& values, bool right,
                        const LazyTensor& sorter) {
  const LazyTensor sorted = in_order(given, sorter);
  const DType type = promote(sorted.dtype(), ops::dtype_beside(values, sorted));
  ops::check_domain("searchsorted", ScalarDomain::numeric, type);
  const bool shared = sorted.rank() == 1;
  bool fits = shared || (sorted.rank() > 1 && sorted.rank() == values.rank());
  for (int i = 0; fits && !shared && i + 1 < values.rank(); ++i) fits = sorted.shape(i) == values.shape(i);
  if (!fits) {
    throw ShapeError(fmt::format(
        "searchsorted: a sequence of {} for values of {}; it must have one axis, or the axes of the "
        "values with the same extents but for the last",
        sorted.shape().to_string(), values.shape().to_string()));
  }
  if (values.numel() == 0 || sorted.numel() == 0) return no_positions(values.shape(), sorted.device());
  // A number may be beyond the type of the sequence.
  const DType wide = ops::holds(type, values) ? compute_type(type) : DType::i64;
  const std::int64_t n = sorted.shape(-1);
  const std::int64_t rows = shared ? 1 : sorted.numel() / n;
  const LazyTensor sequence = stop_gradient(as_rows(ops::as_operand(sorted, wide), rows));
  const LazyTensor wanted =
      stop_gradient(as_rows(ops::anchored(ops::as_operand(values, wide), sorted.device()), rows));
  const LazyTensor found =
      right ? preceding(sequence, wanted,
                        [](const LazyTensor& s, const LazyTensor& v) { return logical_not(is_less(v, s)); })
            : preceding(sequence, wanted, is_less);
  return reshape(found, values.shape());
}

}  // namespace caldera
