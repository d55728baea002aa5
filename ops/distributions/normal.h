// Normal distributions: independent numbers, vectors with a diagonal covariance, and vectors squashed by
// tanh. Part of distributions.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Normal(mean, std), number by number. The shapes of its parameters broadcast; all results have that shape.
/// Everything is differentiable with respect to the parameters and the value. Throws DTypeError for
/// parameters that are not floating, ShapeError where they do not broadcast. std > 0 is not checked.
class Normal {
 public:
  Normal(LazyTensor mean, LazyTensor std);

  const LazyTensor& mean() const { return mean_; }
  const LazyTensor& std() const { return std_; }
  /// Returns the log-density of each number, in nats.
  LazyTensor log_prob(const LazyTensor& value) const;
  LazyTensor entropy() const;
  /// Returns the probability of a number not above `value`.
  LazyTensor cdf(const LazyTensor& value) const;
  /// Draws by mean + std * noise, through which gradients pass: noise is standard normal, made of the seed.
  LazyTensor rsample(std::uint64_t seed) const;
  /// Draws with noise that is given, as functions under compiled() must.
  LazyTensor rsample(const LazyTensor& noise) const;
  /// Draws without a gradient.
  LazyTensor sample(std::uint64_t seed) const;

 private:
  LazyTensor mean_, std_;
};

/// Returns KL(p || q), number by number.
LazyTensor kl_divergence(const Normal& p, const Normal& q);

/// A vector, the last axis, of independent normal numbers: log_prob and entropy are sums over it.
class DiagonalNormal {
 public:
  /// Takes the logarithm of the deviation, which policies learn.
  DiagonalNormal(LazyTensor mean, LazyTensor log_std);

  const LazyTensor& mean() const { return mean_; }
  const LazyTensor& log_std() const { return log_std_; }
  LazyTensor std() const;
  LazyTensor log_prob(const LazyTensor& value) const;
  LazyTensor entropy() const;
  LazyTensor rsample(std::uint64_t seed) const;
  LazyTensor rsample(const LazyTensor& noise) const;
  LazyTensor sample(std::uint64_t seed) const;

 private:
  LazyTensor mean_, log_std_;
};

LazyTensor kl_divergence(const DiagonalNormal& p, const DiagonalNormal& q);

/// Holds a vector that was squashed and what tanh was taken of.
struct Squashed {
  LazyTensor value;
  LazyTensor before;
};

/// tanh of a DiagonalNormal: actions within (-1, 1). It is squashed here and nowhere else. Its entropy has no
/// formula; estimate it by -log_prob of draws.
class TanhNormal {
 public:
  TanhNormal(LazyTensor mean, LazyTensor log_std) : inner_(std::move(mean), std::move(log_std)) {}

  /// Returns the distribution before tanh.
  const DiagonalNormal& inner() const { return inner_; }
  /// Returns the value of the largest density before squashing: tanh(mean).
  LazyTensor mode() const;
  /// Takes a value within (-1, 1), clamped to the largest that the type tells from 1. Near the bounds atanh
  /// loses digits: prefer the variant below where the value before tanh is known.
  LazyTensor log_prob(const LazyTensor& value) const;
  /// Takes the value before tanh: log_prob of the inner one less the sum of 2 (log 2 - u - softplus(-2 u)),
  /// which is log(1 - tanh(u)^2) without cancellation (Haarnoja et al. 2018, appendix C).
  LazyTensor log_prob_before(const LazyTensor& before) const;
  Squashed rsample(std::uint64_t seed) const;
  Squashed rsample(const LazyTensor& noise) const;
  LazyTensor sample(std::uint64_t seed) const;

 private:
  DiagonalNormal inner_;
};

/// Returns KL of the inner ones, which squashing does not change.
LazyTensor kl_divergence(const TanhNormal& p, const TanhNormal& q);

}  // namespace caldera
