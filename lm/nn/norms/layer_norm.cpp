#include "lm/nn/norms/layer_norm.h"

#include "lm/nn/precision.h"
#include "ops/core/cast.h"
#include "ops/nn/normalization.h"

namespace caldera {

LayerNorm::LayerNorm(std::int64_t dim, double eps, bool bias, Device device)
    : weight_{LazyTensor::ones(Shape{dim}, DType::f32, device)}, eps_(eps) {
  if (bias) bias_.tensor = LazyTensor::zeros(Shape{dim}, DType::f32, device);
}

LazyTensor LayerNorm::forward(const LazyTensor& x) {
  if (!is_16bit_float(x.dtype())) return layer_norm(x, eps_, weight_.tensor, bias_.tensor);
  const LazyTensor bias = bias_.tensor.defined() ? in_dtype(bias_.tensor, DType::f32) : LazyTensor{};
  return astype(layer_norm(astype(x, DType::f32), eps_, in_dtype(weight_.tensor, DType::f32), bias),
                x.dtype());
}

void LayerNorm::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
  if (bias_.tensor.defined()) visitor.parameter(join_name(prefix, "bias"), bias_);
}

}  // namespace caldera
