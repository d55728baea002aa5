// Linear layers: y = x W^T + b.
#pragma once

#include "training/nn/module.h"

namespace caldera {

/// A linear map of the last axis: what attention and the feed-forward layers call, with or without LoRA.
class Projection : public Module {
 public:
  /// x (..., in) to (..., out). A 1-D x gives a 1-D result.
  virtual LazyTensor forward(const LazyTensor& x) = 0;
  virtual std::int64_t in_features() const = 0;
  virtual std::int64_t out_features() const = 0;
};

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
