#include "lm/nn/layers/embedding.h"

#include <fmt/format.h>

#include "lm/nn/init.h"
#include "lm/nn/precision.h"
#include "ops/core/ranges.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/embedding.h"
#include "ops/quantized/quantized_products.h"
#include "ops/random/generator.h"

namespace caldera {

Embedding::Embedding(LazyTensor weight) : weight_{std::move(weight)} {
  if (this->weight().rank() != 2)
    throw ShapeError(
        fmt::format("Embedding: weight {} is not a matrix (count, dim)", this->weight().shape().to_string()));
}

Embedding::Embedding(std::int64_t count, std::int64_t dim) {
  if (count < 1 || dim < 1)
    throw ValueError(fmt::format("Embedding: extents {} and {}: both must be positive", count, dim));
  weight_.tensor = normal_init(Shape{count, dim}, 1, next_seed(), default_device());
  materialize();
}

Embedding::Embedding(std::int64_t count, std::int64_t dim, double std, std::uint64_t seed, Device device)
    : Embedding(normal_init(Shape{count, dim}, std, seed, device)) {}

LazyTensor Embedding::forward(const LazyTensor& ids) {
  return weight_.is_quantized() ? quantized_embedding(weight_.quantized, ids) : embedding(weight(), ids);
}

LazyTensor Embedding::rows(std::int64_t begin, std::int64_t end) const {
  if (!weight_.is_quantized()) return slice(weight(), 0, begin, end);
  const QuantizedTensor& table = weight_.quantized;
  return quantized_embedding(table, arange(end - begin, DType::i32, table.device()) + begin);
}

LazyTensor Embedding::project(const LazyTensor& hidden) const {
  return weight_.is_quantized() ? quantized_matmul(hidden, weight_.quantized)
                                : matmul(hidden, transpose(cast_like(weight(), hidden)));
}

void Embedding::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.matrix(join_name(prefix, "weight"), weight_);
}

std::optional<LazyTensor> TiedHead::matrix() {
  if (!table_.weight().defined()) return std::nullopt;
  return table_.weight();
}

}  // namespace caldera
