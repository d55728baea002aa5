#include "training/nn/rms_norm.h"

#include <fmt/format.h>

#include "ops/core/cast.h"
#include "ops/nn/normalization.h"
#include "training/nn/precision.h"

namespace caldera {

RMSNorm::RMSNorm(LazyTensor weight, double eps) : weight_{std::move(weight)}, eps_(eps) {
  if (this->weight().rank() != 1)
    throw ShapeError(
        fmt::format("RMSNorm: weight {} is not a vector (dim)", this->weight().shape().to_string()));
}

RMSNorm::RMSNorm(std::int64_t dim, double eps, Device device)
    : RMSNorm(LazyTensor::ones(Shape{dim}, DType::f32, device), eps) {}

LazyTensor RMSNorm::forward(const LazyTensor& x) {
  if (!is_16bit_float(x.dtype())) return rms_norm(x, eps_, weight());
  // Squares overflow f16, and their mean wants more bits than either type has.
  return astype(rms_norm(astype(x, DType::f32), eps_, in_dtype(weight(), DType::f32)), x.dtype());
}

void RMSNorm::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
}

}  // namespace caldera
