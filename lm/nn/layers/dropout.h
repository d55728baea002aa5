// Inverted dropout (Srivastava et al. 2014) with counter-based masks.
#pragma once

#include "lm/nn/module.h"

namespace caldera {

/// In training mode each element is zero with probability p, else x / (1 - p); in evaluation mode, or with p
/// = 0, x itself. The mask is Philox of (seed, number of calls since the last set_random_seed): the same on
/// every device, and an argument of the plan.
class Dropout final : public Layer {
 public:
  /// `stream` tells the layers of one model apart. Throws ValueError unless 0 <= p < 1.
  explicit Dropout(double p = 0.5, std::uint64_t stream = 0);

  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;
  double p() const { return p_; }

 protected:
  void reseed(std::uint64_t seed) override;

 private:
  double p_;
  std::uint64_t stream_;
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
};

}  // namespace caldera
