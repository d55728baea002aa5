#include "ops/nn/embedding.h"

#include <fmt/core.h>

#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"

namespace caldera {

LazyTensor embedding(const LazyTensor& weight, const LazyTensor& indices,
                     std::optional<std::int64_t> padding_idx) {
  ops::check_domain("embedding", ScalarDomain::floating, weight.dtype());
  if (weight.rank() != 2)
    throw ShapeError(
        fmt::format("embedding: weight {} is not a matrix (count, features)", weight.shape().to_string()));
  if (!is_integral(indices.dtype()))
    throw DTypeError(fmt::format("embedding: indices are {}, want integers", name(indices.dtype())));
  LazyTensor rows = take(weight, indices, 0);
  if (!padding_idx) return rows;
  const std::int64_t count = weight.shape(0);
  if (*padding_idx < -count || *padding_idx >= count)
    throw ValueError(fmt::format("embedding: padding_idx {} is outside of {} rows", *padding_idx, count));
  const auto at = static_cast<int>(*padding_idx < 0 ? *padding_idx + count : *padding_idx);
  const LazyTensor is_padding = equal(ops::anchored(indices, weight.device()), at);
  return where(expand_dims(is_padding, -1), stop_gradient(rows), rows);
}

LazyTensor one_hot(const LazyTensor& indices, std::int64_t classes, DType dtype) {
  if (classes < 0) throw ValueError(fmt::format("one_hot: there are no {} classes", classes));
  Shape shape = indices.shape();
  shape.push_back(classes);
  return astype(expand_dims(indices, -1) == iota(shape, -1, DType::i32, indices.device()), dtype);
}

}  // namespace caldera
