#include "lm/nn/norms/rms_norm.h"

#include <fmt/format.h>

#include "lm/nn/precision.h"
#include "ops/core/cast.h"
#include "ops/nn/normalization.h"

namespace caldera {

RMSNorm::RMSNorm(LazyTensor weight, double eps, NormWeight form)
    : weight_{std::move(weight)}, eps_(eps), form_(form) {
  if (this->weight().rank() != 1)
    throw ShapeError(
        fmt::format("RMSNorm: weight {} is not a vector (dim)", this->weight().shape().to_string()));
}

RMSNorm::RMSNorm(std::int64_t dim, double eps, Device device, NormWeight form)
    : RMSNorm(form == NormWeight::plain ? LazyTensor::ones(Shape{dim}, DType::f32, device)
                                        : LazyTensor::zeros(Shape{dim}, DType::f32, device),
              eps, form) {}

LazyTensor RMSNorm::forward(const LazyTensor& x) {
  const bool half = is_16bit_float(x.dtype());
  LazyTensor scale = half ? in_dtype(weight(), DType::f32) : weight();
  if (form_ == NormWeight::plus_one) scale = scale + 1;
  if (!half) return rms_norm(x, eps_, scale);
  // Squares overflow f16, and their mean wants more bits than either type has.
  return astype(rms_norm(astype(x, DType::f32), eps_, scale), x.dtype());
}

void RMSNorm::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
}

}  // namespace caldera
