#include "ops/sort/counted_repetition.h"

#include <fmt/core.h>

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/reduce/cumulative.h"

namespace caldera {
namespace {

/// Counts between 0 and `most`, which int32 holds, as i32.
LazyTensor limited_counts(const LazyTensor& counts, std::int64_t most) {
  const LazyTensor numbers = counts.dtype() == DType::boolean ? astype(counts, DType::i32) : counts;
  return astype(clip(numbers, 0, most), DType::i32);
}

}  // namespace

LazyTensor repeat(const LazyTensor& x, const LazyTensor& given, std::optional<AxisIndex> axis,
                  std::optional<std::int64_t> total) {
  const LazyTensor y = axis ? x : reshape(x, Shape{x.numel()});
  const int at = y.shape().normalize_axis(axis.value_or(0), "repeat");
  if (!is_integral(given.dtype()))
    throw DTypeError(fmt::format("repeat: counts are {}, want integers", name(given.dtype())));
  const LazyTensor counts = ops::anchored(given, x.device());
  const std::int64_t n = y.shape(at);
  if (counts.rank() > 1 || (counts.numel() != n && counts.numel() != 1))
    throw ShapeError(fmt::format("repeat: counts of {} for the {} elements along axis {} of shape {}",
                                 counts.shape().to_string(), n, axis.value_or(0), x.shape().to_string()));
  constexpr std::int64_t kMostCopies = std::numeric_limits<std::int32_t>::max();
  if (total && (*total < 0 || *total > kMostCopies - n))
    throw ValueError(fmt::format("repeat: a total of {}", *total));
  // Larger counts give no other result.
  const LazyTensor each = broadcast_to(
      reshape(limited_counts(counts, total.value_or(kMostCopies)), Shape{counts.numel()}), Shape{n});
  const std::int64_t copies = total ? *total : sum(astype(each, DType::i64)).item<std::int64_t>();
  if (copies > kMostCopies - n) throw ValueError(fmt::format("repeat: a total of {}", copies));
  if (n == 0 || copies == 0)
    return take(y, full(Shape{copies}, static_cast<int>(n), DType::i32, y.device()), at);
  // Every element is written to where its first copy goes, and what has none behind all copies: no two meet.
  // Copy k is of the last element that begins up to it.
  const Device device = y.device();
  const LazyTensor copy = iota(Shape{copies}, 0, DType::i32, device),
                   number = iota(Shape{n}, 0, DType::i32, device);
  // Sums of counts that a total cuts may be beyond int32.
  const LazyTensor widths = astype(each, n * copies > kMostCopies && total ? DType::i64 : DType::i32);
  const LazyTensor ends = cumsum(widths, 0), begins = ends - widths;
  const auto behind = static_cast<int>(copies);
  const LazyTensor place =
      astype(where(logical_and(each > 0, begins < behind), begins, number + behind), DType::i32);
  const LazyTensor first = slice(ops::scattered(Scatter::set, zeros(Shape{copies + n}, DType::i32, device),
                                                place, number, 0, ops::Indices::distinct),
                                 0, 0, copies);
  const LazyTensor of = where(copy < slice(ends, 0, n - 1, n), cummax(first, 0), static_cast<int>(n));
  return take(y, of, at);
}

}  // namespace caldera
