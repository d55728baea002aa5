#include "training/vision/layers/batch_norm2d.h"

namespace caldera::vision {

BatchNorm2d::BatchNorm2d(std::int64_t channels, Device device, double eps, double momentum)
    : weight_{LazyTensor::ones(Shape{channels}, DType::f32, device)},
      bias_{LazyTensor::zeros(Shape{channels}, DType::f32, device)},
      mean_{.tensor = LazyTensor::zeros(Shape{channels}, DType::f32, device), .trainable = false},
      variance_{.tensor = LazyTensor::ones(Shape{channels}, DType::f32, device), .trainable = false},
      eps_(eps),
      momentum_(momentum) {}

LazyTensor BatchNorm2d::forward(const LazyTensor& x) {
  // Statistics are the past's: no gradient goes through them.
  const BatchNormResult result =
      batch_norm(x, mean_.tensor.detach(), variance_.tensor.detach(), weight_.tensor, bias_.tensor,
                 {.training = is_training(), .momentum = momentum_, .eps = eps_});
  if (is_training()) {
    mean_.tensor = result.running_mean;
    variance_.tensor = result.running_var;
  }
  return result.output;
}

void BatchNorm2d::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
  visitor.parameter(join_name(prefix, "bias"), bias_);
  visitor.parameter(join_name(prefix, "running_mean"), mean_);
  visitor.parameter(join_name(prefix, "running_var"), variance_);
}

std::vector<LazyTensor> running_statistics(Module& model) {
  std::vector<LazyTensor> all;
  for (const Parameter& p : model.parameters()) {
    if (!p.trainable && !p.tensor->is_evaluated()) all.push_back(*p.tensor);
  }
  return all;
}

}  // namespace caldera::vision
