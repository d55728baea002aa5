// Linear layers: y = x W^T + b.
#pragma once

#include <cstdint>
#include <optional>

#include "lm/nn/module.h"

namespace caldera {

/// Options of Linear(in, out).
struct LinearOptions {
  bool bias = true;
  std::optional<Device> device;       ///< else default_device()
  std::optional<std::uint64_t> seed;  ///< else the global generator's: see manual_seed()
};

/// y = x W^T + b with W (out, in) as PyTorch stores it. The transpose is a view. Parameters "weight" and, if
/// given, "bias". A quantised weight is dequantised inside the product.
class Linear final : public Projection {
 public:
  /// weight (out, in) and bias (out), both floating; the bias may be undefined. Throws ShapeError or
  /// DTypeError otherwise.
  explicit Linear(LazyTensor weight, LazyTensor bias = {});
  /// Initialises as torch.nn.Linear does: weight and bias uniform on (-1/sqrt(in), 1/sqrt(in)), evaluated.
  /// Throws ValueError unless both widths are positive.
  Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options = {});
  /// W normal(0, std) from Philox seeded with `seed`, bias (if any) zero; not evaluated.
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias, double std, std::uint64_t seed,
         Device device);

  LazyTensor forward(const LazyTensor& x) override;
  std::int64_t in_features() const override { return weight_.shape()[1]; }
  std::int64_t out_features() const override { return weight_.shape()[0]; }
  /// Without the bias: nothing where there is one.
  std::optional<LazyTensor> matrix() override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  /// Undefined where the weight is quantised.
  const LazyTensor& weight() const { return weight_.tensor; }
  const LazyTensor& bias() const { return bias_.tensor; }

 private:
  Weight weight_;
  Weight bias_;
};

}  // namespace caldera
