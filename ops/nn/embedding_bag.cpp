#include "ops/nn/embedding_bag.h"

#include <fmt/core.h>

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/index/scatter.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

/// Which bag each index of one axis is in, and how many there are.
struct Bags {
  LazyTensor of;
  std::int64_t count;
};

Bags bags_of(const LazyTensor& indices, const EmbeddingBagOptions& options, Device device) {
  const char* const op = "embedding_bag";
  const bool is_table = indices.rank() == 2;
  if (indices.rank() != 1 && !is_table)
    throw ShapeError(fmt::format("{}: indices {} have not one or two axes", op, indices.shape().to_string()));
  if (is_table == options.offsets.defined())
    throw ShapeError(fmt::format("{}: indices {} {} offsets", op, indices.shape().to_string(),
                                 is_table ? "take no" : "need"));
  if (is_table) {
    if (options.include_last_offset)
      throw ValueError(fmt::format("{}: include_last_offset without offsets", op));
    const LazyTensor row = iota(indices.shape(), 0, DType::i32, device);
    return {reshape(row, Shape{indices.numel()}), indices.shape(0)};
  }
  ops::check_index_type(op, options.offsets);
  if (options.offsets.rank() != 1)
    throw ShapeError(
        fmt::format("{}: offsets {} are not of one axis", op, options.offsets.shape().to_string()));
  const std::int64_t count = options.offsets.shape(0) - (options.include_last_offset ? 1 : 0);
  if (count < 0) throw ShapeError(fmt::format("{}: offsets without the last one", op));
  const LazyTensor at = iota(indices.shape(), 0, DType::i32, device);
  return {searchsorted(astype(options.offsets, DType::i32), at, true) - 1, count};
}

}  // namespace

LazyTensor embedding_bag(const LazyTensor& weight, const LazyTensor& indices,
                         const EmbeddingBagOptions& options) {
  const char* const op = "embedding_bag";
  ops::check_domain(op, ScalarDomain::floating, weight.dtype());
  ops::check_index_type(op, indices);
  if (weight.rank() != 2)
    throw ShapeError(
        fmt::format("{}: weight {} is not a matrix (count, features)", op, weight.shape().to_string()));
  const LazyTensor factors = options.per_sample_weights;
  if (factors.defined() && options.mode != BagMode::sum)
    throw ValueError(fmt::format("{}: per_sample_weights go with sums only", op));
  if (factors.defined() && factors.shape() != indices.shape())
    throw ShapeError(fmt::format("{}: per_sample_weights {} are not one for each of indices {}", op,
                                 factors.shape().to_string(), indices.shape().to_string()));
  if (factors.defined()) ops::check_domain(op, ScalarDomain::floating, factors.dtype());
  const auto [bag, bags] = bags_of(indices, options, weight.device());
  const DType wide = compute_type(weight.dtype());
  const std::int64_t n = indices.numel(), features = weight.shape(1);
  const LazyTensor which = reshape(indices, Shape{n});
  LazyTensor rows = astype(take(weight, which, 0), wide),
             counts = ones(Shape{n}, DType::boolean, weight.device());
  if (options.padding_idx) {
    const std::int64_t count = weight.shape(0), at = *options.padding_idx;
    if (at < -count || at >= count)
      throw ValueError(fmt::format("{}: padding_idx {} is outside of {} rows", op, at, count));
    counts = not_equal(which, at < 0 ? at + count : at);
  }
  // Bags that are none drop what comes to them.
  const LazyTensor to = where(counts, bag, -1), base = zeros(Shape{bags, features}, wide, weight.device());
  if (factors.defined()) rows = rows * reshape(astype(factors, wide), Shape{n, 1});
  LazyTensor result;
  if (options.mode == BagMode::max) {
    result = scatter_max(full_like(base, -std::numeric_limits<double>::infinity()), to, rows);
  } else {
    result = scatter_add(base, to, rows);
  }
  if (options.mode != BagMode::sum) {
    const LazyTensor sizes = reshape(scatter_add(zeros(Shape{bags}, DType::i32, weight.device()), to,
                                                 ones(Shape{n}, DType::i32, weight.device())),
                                     Shape{bags, 1});
    result = options.mode == BagMode::max ? where(sizes > 0, result, base)
                                          : result / astype(maximum(sizes, 1), wide);
  }
  return astype(result, weight.dtype());
}

}  // namespace caldera
