// BatchNorm2d: normalises channels over a batch of images, as a module.
#pragma once

#include <cstdint>

#include "lm/nn/module.h"
#include "ops/nn/channel_normalization.h"

namespace caldera::vision {

/// Normalises each channel: in training by the batch's statistics, otherwise by running ones. Parameters
/// "weight", "bias"; "running_mean" and "running_var" are listed as parameters that are not trained.
/// A call in training makes new running statistics, lazily: evaluate them with the step (running_statistics()
/// lists those of a model).
class BatchNorm2d final : public Layer {
 public:
  BatchNorm2d(std::int64_t channels, Device device, double eps = 1e-5, double momentum = 0.1);

  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  Weight weight_, bias_, mean_, variance_;
  double eps_, momentum_;
};

/// Returns the running statistics of a model that are not evaluated yet.
std::vector<LazyTensor> running_statistics(Module& model);

}  // namespace caldera::vision
