// Linear layers: y = x W^T + b.
#pragma once

#include "training/nn/module.h"

namespace caldera {

/// y = x W^T + b with W (out, in) as PyTorch stores it. The transpose is a view. Parameters "weight" and, if
/// given, "bias".
class Linear final : public Projection {
 public:
  /// weight (out, in), floating; bias (out) or undefined. Throws ShapeError otherwise.
  explicit Linear(LazyTensor weight, LazyTensor bias = {});
  /// W normal(0, std) from Philox seeded with `seed`, bias (if any) zero.
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias, double std, std::uint64_t seed,
         Device device);

  LazyTensor forward(const LazyTensor& x) override;
  std::int64_t in_features() const override { return weight_.tensor.shape()[1]; }
  std::int64_t out_features() const override { return weight_.tensor.shape()[0]; }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  const LazyTensor& weight() const { return weight_.tensor; }
  const LazyTensor& bias() const { return bias_.tensor; }

 private:
  Weight weight_;
  Weight bias_;
};

}  // namespace caldera
