#include "ops/distributions/uniform.h"

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/distributions/parameters.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/exponential.h"
#include "ops/random/uniform_normal.h"

namespace caldera {

Uniform::Uniform(LazyTensor low, LazyTensor high) : low_(std::move(low)), high_(std::move(high)) {
  ops::check_floating("Uniform", "low", low_);
  ops::check_floating("Uniform", "high", high_);
  ops::share_shape("Uniform", low_, high_);
}

LazyTensor Uniform::log_prob(const LazyTensor& value) const {
  const LazyTensor inside = logical_and(value >= low_, value < high_);
  return where(inside, -entropy(), LazyTensor(-std::numeric_limits<double>::infinity()));
}

LazyTensor Uniform::entropy() const { return log(high_ - low_); }
LazyTensor Uniform::mean() const { return (low_ + high_) * 0.5; }

LazyTensor Uniform::rsample(std::uint64_t seed) const {
  return low_ + (high_ - low_) * random_uniform(low_.shape(), seed, low_.dtype(), low_.device());
}

LazyTensor Uniform::sample(std::uint64_t seed) const { return stop_gradient(rsample(seed)); }

LazyTensor kl_divergence(const Uniform& p, const Uniform& q) {
  const LazyTensor within = logical_and(p.low() >= q.low(), p.high() <= q.high());
  return where(within, q.entropy() - p.entropy(), LazyTensor(std::numeric_limits<double>::infinity()));
}

}  // namespace caldera
