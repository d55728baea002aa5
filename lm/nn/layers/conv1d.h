// Conv1D: the linear map of GPT-2, whose matrix is the other way round than that of Linear.
#pragma once

#include <cstdint>

#include "lm/nn/module.h"

namespace caldera {

/// y = x W + b with W (in, out), as transformers' Conv1D stores it. Parameters "weight" and "bias".
class Conv1D final : public Projection {
 public:
  /// W normal(0, std) from Philox seeded with `seed`, bias zero; not evaluated.
  Conv1D(std::int64_t in_features, std::int64_t out_features, double std, std::uint64_t seed, Device device);

  LazyTensor forward(const LazyTensor& x) override;
  std::int64_t in_features() const override { return weight_.tensor.shape()[0]; }
  std::int64_t out_features() const override { return weight_.tensor.shape()[1]; }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  Weight weight_;
  Weight bias_;
};

}  // namespace caldera
