// Conv2d: a convolution over images, as a module.
#pragma once

#include <cstdint>

#include "lm/nn/module.h"
#include "ops/spatial/convolution.h"

namespace caldera::vision {

struct Conv2dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  std::uint64_t seed = 0;
  Device device = Device::cpu();
};

/// Convolves (batch, channels, height, width). Parameters "weight" (out, in / groups, kernel, kernel) and
/// "bias" (out). With a bias both begin as PyTorch's do, uniform on (-1/sqrt(fan in), 1/sqrt(fan in));
/// without one, ahead of a normalisation, the weight is normal with deviation sqrt(2 / fan out) (He et al.
/// 2015), as in torchvision's networks.
class Conv2d final : public Layer {
 public:
  /// Throws ValueError for widths below 1 and groups that do not divide them.
  Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, const Conv2dOptions& options);

  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  Weight weight_, bias_;
  ConvOptions options_;
};

}  // namespace caldera::vision
