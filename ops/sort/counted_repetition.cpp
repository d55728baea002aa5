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
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/reduce/cumulative.h"
#include "ops/sort/sorting.h"

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
  if (copies < 0 || copies > std::numeric_limits<std::int32_t>::max())
    throw ValueError(fmt::format("repeat: a total of {}", copies));
  // Copy k is of the first element up to which more than k copies are made.
  const LazyTensor copy = iota(Shape{copies}, 0, DType::i32, y.device());
  return take(y, searchsorted(cumsum(each, 0), copy, true), at);
}

}  // namespace caldera
