#include "training/nn/rms_norm.h"

#include <fmt/format.h>

#include "ops/ops.h"

namespace caldera {

RMSNorm::RMSNorm(LazyTensor weight, double eps) : weight_{std::move(weight)}, eps_(eps) {
  if (this->weight().rank() != 1)
    throw ShapeError(
        fmt::format("RMSNorm: weight {} is not a vector (dim)", this->weight().shape().to_string()));
}

RMSNorm::RMSNorm(std::int64_t dim, double eps, Device device)
    : RMSNorm(LazyTensor::ones(Shape{dim}, DType::f32, device), eps) {}

LazyTensor RMSNorm::forward(const LazyTensor& x) { return rms_norm(x, eps_, weight()); }

void RMSNorm::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
}

}  // namespace caldera
