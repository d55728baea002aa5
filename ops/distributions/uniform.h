// The uniform distribution. Part of distributions.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Uniform on [low, high), number by number; low < high is not checked. Throws DTypeError for bounds that are
/// not floating.
class Uniform {
 public:
  Uniform(LazyTensor low, LazyTensor high);

  const LazyTensor& low() const { return low_; }
  const LazyTensor& high() const { return high_; }
  /// Returns -log(high - low), and -infinity outside.
  LazyTensor log_prob(const LazyTensor& value) const;
  LazyTensor entropy() const;
  LazyTensor mean() const;
  /// Draws by low + (high - low) * u, through which gradients pass.
  LazyTensor rsample(std::uint64_t seed) const;
  LazyTensor sample(std::uint64_t seed) const;

 private:
  LazyTensor low_, high_;
};

/// Returns KL(p || q): infinite where p has values that q has not.
LazyTensor kl_divergence(const Uniform& p, const Uniform& q);

}  // namespace caldera
