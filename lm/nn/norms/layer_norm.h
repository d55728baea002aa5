// LayerNorm (Ba, Kiros and Hinton 2016): (x - mean) / sqrt(variance + eps) * weight + bias over the last
// axis.
#pragma once

#include <cstdint>

#include "lm/nn/module.h"

namespace caldera {

/// Parameters "weight" (dim), initially ones, and, if asked for, "bias" (dim), initially zeros.
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(std::int64_t dim, double eps = 1e-5, bool bias = true, Device device = default_device());

  /// x (..., dim) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  Weight weight_;
  Weight bias_;
  double eps_;
};

}  // namespace caldera
