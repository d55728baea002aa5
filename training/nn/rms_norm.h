// RMSNorm (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + eps) * weight over the last axis.
#pragma once

#include "training/nn/module.h"

namespace caldera {

/// Parameter "weight" (dim), initially ones.
class RMSNorm final : public Layer {
 public:
  RMSNorm(LazyTensor weight, double eps);
  explicit RMSNorm(std::int64_t dim, double eps = 1e-6, Device device = default_device());

  /// x (..., dim) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;
  const LazyTensor& weight() const { return weight_.tensor; }
  double eps() const { return eps_; }

 private:
  Weight weight_;
  double eps_;
};

}  // namespace caldera
