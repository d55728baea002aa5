#include "training/nn/embedding.h"

#include <fmt/format.h>

#include "ops/nn/embedding.h"
#include "ops/random/uniform_normal.h"

namespace caldera {

Embedding::Embedding(LazyTensor weight) : weight_{std::move(weight)} {
  if (this->weight().rank() != 2)
    throw ShapeError(
        fmt::format("Embedding: weight {} is not a matrix (count, dim)", this->weight().shape().to_string()));
}

Embedding::Embedding(std::int64_t count, std::int64_t dim, double std, std::uint64_t seed, Device device)
    : Embedding(random_normal(Shape{count, dim}, seed, DType::f32, device) * std) {}

LazyTensor Embedding::forward(const LazyTensor& ids) { return embedding(weight(), ids); }

void Embedding::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
}

}  // namespace caldera
