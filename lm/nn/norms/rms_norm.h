// RMSNorm (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + eps) * weight over the last axis.
#pragma once

#include <cstdint>

#include "lm/nn/module.h"

namespace caldera {

/// Says what an RMSNorm multiplies by: its weight, initially ones, or one more than it (Gemma), initially
/// zeros.
enum class NormWeight : std::uint8_t { plain, plus_one };

/// Parameter "weight" (dim).
class RMSNorm final : public Layer {
 public:
  RMSNorm(LazyTensor weight, double eps, NormWeight form = NormWeight::plain);
  explicit RMSNorm(std::int64_t dim, double eps = 1e-6, Device device = default_device(),
                   NormWeight form = NormWeight::plain);

  /// x (..., dim) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;
  const LazyTensor& weight() const { return weight_.tensor; }
  double eps() const { return eps_; }

 private:
  Weight weight_;
  double eps_;
  NormWeight form_;
};

}  // namespace caldera
