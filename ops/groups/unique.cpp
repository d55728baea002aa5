#include "ops/groups/unique.h"

#include <fmt/core.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/index/masks.h"
#include "ops/index/scatter.h"
#include "ops/index/take_put.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

void check_count(const char* op, const LazyTensor& x, std::int64_t count) {
  if (count >= kMost)
    throw ShapeError(fmt::format("{}: {} has more elements than int32 counts", op, x.shape().to_string()));
}
/// How many are shown, and what is behind them.
void check_shown(const char* op, std::int64_t size, FillValue fill, DType type) {
  if (size < 0 || size >= kMost)
    throw ValueError(fmt::format("{}: a size of {}, want 0 to 2^31 - 2", op, size));
  ops::held_scalar(op, fill, type);
}

/// Elements as a vector in which equal ones are neighbours.
struct Runs {
  const char* op;
  Shape shape;                      // of x
  LazyTensor values, first, order;  // order: where the values come from, undefined where that is here
  LazyTensor rank, size;

  Runs(const char* of_op, const LazyTensor& x, bool sorted) : op(of_op), shape(x.shape()) {
    check_count(op, x, x.numel());
    const LazyTensor flat = reshape(x, Shape{x.numel()});
    if (sorted) order = argsort(flat);
    values = sorted ? take(flat, order) : flat;
    const std::int64_t n = x.numel();
    if (n == 0) {
      first = zeros(Shape{0}, DType::boolean, x.device());
      rank = zeros(Shape{0}, DType::i32, x.device());
    } else {
      const LazyTensor ahead = stop_gradient(values);
      first = concatenate({ones(Shape{1}, DType::boolean, x.device()),
                           not_equal(slice(ahead, 0, 1, n), slice(ahead, 0, 0, n - 1))});
      rank = cumsum(astype(first, DType::i32)) - 1;
    }
    size = sum(astype(first, DType::i32));
  }

  UniqueResult shown(std::int64_t count, FillValue fill) const {
    check_shown(op, count, fill, values.dtype());
    const std::int64_t n = values.numel();
    UniqueResult out;
    out.size = size;
    out.values = masked_select(values, first, count, fill);
    // Where the values begin, and the end for those that are not there.
    const LazyTensor starts = nonzero(first, count + 1, n)[0];
    out.counts = slice(starts, 0, 1, count + 1) - slice(starts, 0, 0, count);
    const LazyTensor back = order.defined() && n > 0 ? scatter(zeros_like(rank), order, rank) : rank;
    out.inverse = reshape(back, shape);
    return out;
  }
};

/// Fewer elements are sorted.
constexpr std::int64_t kWorthCounting = 4096;

/// Integers of a range that is no longer than they are many: counted instead of sorted. Reads the range.
std::optional<UniqueResult> counted_values(const LazyTensor& x) {
  const std::int64_t n = x.numel();
  if (!is_integral(x.dtype()) || x.dtype() == DType::boolean || n < kWorthCounting || n >= kMost ||
      x.device().kind != DeviceKind::cpu)
    return std::nullopt;
  const LazyTensor flat = reshape(x, Shape{n});
  const LazyTensor ends = stack({min(flat), max(flat)});
  const std::vector<std::int64_t> range = astype(ends, DType::i64).to_vector<std::int64_t>();
  const std::int64_t low = range[0];
  std::int64_t extent = 0;
  if (__builtin_sub_overflow(range[1], low, &extent) || extent >= n) return std::nullopt;
  ++extent;
  const LazyTensor which = astype(astype(flat, DType::i64) - low, DType::i32);
  const LazyTensor all = scatter_add(zeros(Shape{extent}, DType::i32, x.device()), which,
                                     ones(Shape{n}, DType::i32, x.device()));
  const LazyTensor there = all > 0;
  UniqueResult out;
  out.size = sum(astype(there, DType::i32));
  const LazyTensor places = nonzero(there, out.size.item<std::int64_t>())[0];
  out.values = astype(astype(places, DType::i64) + low, x.dtype());
  out.counts = take(all, places);
  out.inverse = reshape(take(cumsum(astype(there, DType::i32)) - 1, which), x.shape());
  return out;
}

/// Dense ranks of the elements of each row, (rows, n): 0 for the least; NaN is above all, each for itself.
LazyTensor ranks_of(const LazyTensor& rows) {
  const std::int64_t n = rows.shape(1);
  const LazyTensor order = argsort(rows), sorted = take_along_axis(rows, order, 1);
  const LazyTensor first = zeros(Shape{rows.shape(0), 1}, DType::i32, rows.device());
  const LazyTensor changes = not_equal(slice(sorted, 1, 1, n), slice(sorted, 1, 0, n - 1));
  const LazyTensor ranks = cumsum(concatenate({first, astype(changes, DType::i32)}, 1), 1);
  return put_along_axis(zeros_like(ranks), order, ranks, 1);
}

/// Slices along an axis, in an order in which equal ones are neighbours.
struct SliceRuns {
  const char* op;
  LazyTensor x, first, order;  // order: undefined where it is that of x
  int axis;
  std::int64_t count;  // of slices

  SliceRuns(const char* of_op, const LazyTensor& of_x, int given, bool sorted)
      : op(of_op), x(of_x), axis(of_x.shape().normalize_axis(given, of_op)), count(of_x.shape(axis)) {
    check_count(op, x, x.numel());
    std::int64_t elements = 1;
    for (int i = 0; i < x.rank(); ++i) elements *= i == axis ? 1 : x.shape(i);
    if (elements == 0)
      throw ShapeError(
          fmt::format("{}: the slices of {} along axis {} are empty", op, x.shape().to_string(), axis));
    if (count == 0) {
      first = zeros(Shape{0}, DType::boolean, x.device());
      return;
    }
    // (elements of a slice, slices).
    LazyTensor rows = transpose(reshape(moveaxis(stop_gradient(x), axis, 0), Shape{count, elements}));
    if (sorted) {
      rows = ranks_of(rows);
      // Two ranks make one number, by halves until one is left.
      const DType type = count <= 46340 ? DType::i32 : DType::i64;  // whose square each type holds
      while (rows.shape(0) > 1) {
        const std::int64_t pairs = (rows.shape(0) + 1) / 2;
        if (rows.shape(0) % 2 != 0) rows = pad(rows, {0, 0}, {1, 0}, 0);
        rows = astype(reshape(rows, Shape{pairs, 2, count}), type);
        rows = ranks_of(squeeze(slice(rows, 1, 0, 1), 1) * count + squeeze(slice(rows, 1, 1, 2), 1));
      }
      order = argsort(reshape(rows, Shape{count}));
      rows = take(rows, order, 1);
    }
    const LazyTensor changes = any(not_equal(slice(rows, 1, 1, count), slice(rows, 1, 0, count - 1)), 0);
    first = concatenate({ones(Shape{1}, DType::boolean, x.device()), changes});
  }

  LazyTensor size() const { return sum(astype(first, DType::i32)); }

  UniqueResult shown(std::int64_t wanted, FillValue fill) const {
    check_shown(op, wanted, fill, x.dtype());
    UniqueResult out;
    out.size = size();
    const LazyTensor starts = nonzero(first, wanted + 1, count)[0], begins = slice(starts, 0, 0, wanted);
    out.counts = slice(starts, 0, 1, wanted + 1) - begins;
    Shape shape(Dims::filled(x.rank(), 1));
    shape[axis] = wanted;
    const LazyTensor is_there = reshape(begins < count, shape);
    const LazyTensor values = take(x, order.defined() ? take(order, begins) : begins, axis);
    out.values = where(is_there, values, full_like(values, fill));
    const LazyTensor rank =
        count == 0 ? zeros(Shape{0}, DType::i32, x.device()) : cumsum(astype(first, DType::i32)) - 1;
    out.inverse = order.defined() ? scatter(zeros_like(rank), order, rank) : rank;
    return out;
  }
};

}  // namespace

UniqueResult unique(const LazyTensor& x) {
  if (std::optional<UniqueResult> counted = counted_values(x)) return *std::move(counted);
  const Runs runs("unique", x, true);
  return runs.shown(runs.size.item<std::int64_t>(), 0);
}
UniqueResult unique(const LazyTensor& x, std::int64_t size, FillValue fill) {
  return Runs("unique", x, true).shown(size, fill);
}

UniqueResult unique_consecutive(const LazyTensor& x) {
  const Runs runs("unique_consecutive", x, false);
  return runs.shown(runs.size.item<std::int64_t>(), 0);
}
UniqueResult unique_consecutive(const LazyTensor& x, std::int64_t size, FillValue fill) {
  return Runs("unique_consecutive", x, false).shown(size, fill);
}

UniqueResult unique_along(const LazyTensor& x, AxisIndex axis) {
  const SliceRuns runs("unique_along", x, axis, true);
  return runs.shown(runs.size().item<std::int64_t>(), 0);
}
UniqueResult unique_along(const LazyTensor& x, AxisIndex axis, std::int64_t size, FillValue fill) {
  return SliceRuns("unique_along", x, axis, true).shown(size, fill);
}

UniqueResult unique_consecutive_along(const LazyTensor& x, AxisIndex axis) {
  const SliceRuns runs("unique_consecutive_along", x, axis, false);
  return runs.shown(runs.size().item<std::int64_t>(), 0);
}
UniqueResult unique_consecutive_along(const LazyTensor& x, AxisIndex axis, std::int64_t size,
                                      FillValue fill) {
  return SliceRuns("unique_consecutive_along", x, axis, false).shown(size, fill);
}

}  // namespace caldera
