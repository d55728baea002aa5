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
#include "ops/reduce/cumulative.h"

namespace caldera {

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
  const LazyTensor each =
      maximum(broadcast_to(reshape(astype(counts, DType::i32), Shape{counts.numel()}), Shape{n}), 0);
  const std::int64_t copies = total ? *total : sum(each).item<std::int64_t>();
  if (copies < 0 || copies > std::numeric_limits<std::int32_t>::max() - n)
    throw ValueError(fmt::format("repeat: a total of {}", copies));
  if (n == 0 || copies == 0)
    return take(y, full(Shape{copies}, static_cast<int>(n), DType::i32, y.device()), at);
  // Every element is written to where its first copy goes, and what has none behind all copies: no two meet.
  // Copy k is of the last element that begins up to it.
  const Device device = y.device();
  const LazyTensor copy = iota(Shape{copies}, 0, DType::i32, device),
                   number = iota(Shape{n}, 0, DType::i32, device);
  const LazyTensor ends = cumsum(each, 0), begins = ends - each;
  const auto behind = static_cast<int>(copies);
  const LazyTensor place = where(logical_and(each > 0, begins < behind), begins, number + behind);
  const LazyTensor first = slice(ops::scattered(Scatter::set, zeros(Shape{copies + n}, DType::i32, device),
                                                place, number, 0, ops::Indices::distinct),
                                 0, 0, copies);
  const LazyTensor of = where(copy < slice(ends, 0, n - 1, n), cummax(first, 0), static_cast<int>(n));
  return take(y, of, at);
}

}  // namespace caldera
