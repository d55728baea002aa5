#include "ops/groups/unique.h"

#include <fmt/core.h>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/index/masks.h"
#include "ops/index/scatter.h"
#include "ops/reduce/cumulative.h"
#include "ops/shape/joining.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

/// Elements as a vector in which equal ones are neighbours.
struct Runs {
  const char* op;
  Shape shape;                      // of x
  LazyTensor values, first, order;  // order: where the values come from, undefined where that is here
  LazyTensor rank, size;

  Runs(const char* of_op, const LazyTensor& x, bool sorted) : op(of_op), shape(x.shape()) {
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
    if (count < 0) throw ValueError(fmt::format("{}: a size of {}", op, count));
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

}  // namespace

UniqueResult unique(const LazyTensor& x) {
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

}  // namespace caldera
