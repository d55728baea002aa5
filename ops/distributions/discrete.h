// Distributions of choices: Categorical and Bernoulli. Part of distributions.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// One of the classes of the last axis, class c with probability softmax(logits)[c]. Differentiable with
/// respect to the logits. Throws DTypeError for logits that are not floating, ShapeError for a number.
class Categorical {
 public:
  explicit Categorical(LazyTensor logits);

  const LazyTensor& logits() const { return logits_; }
  /// Returns log_softmax(logits).
  LazyTensor log_probs() const;
  LazyTensor probs() const;
  /// Takes integers of the logits' shape without the last axis. A class that is not there gives NaN.
  LazyTensor log_prob(const LazyTensor& value) const;
  LazyTensor entropy() const;
  /// Draws classes, i32, without a gradient.
  LazyTensor sample(std::uint64_t seed) const;
  /// Draws by uniform numbers of the logits' shape that are given: the class of the largest logit less
  /// log(-log(u)) (Gumbel 1954).
  LazyTensor sample(const LazyTensor& uniform) const;
  /// Returns the likeliest class, the first of equal ones.
  LazyTensor mode() const;

 private:
  LazyTensor logits_;
};

/// Returns KL(p || q) = sum of p (log p - log q).
LazyTensor kl_divergence(const Categorical& p, const Categorical& q);

/// True with probability sigmoid(logit), number by number. Throws DTypeError for logits that are not
/// floating.
class Bernoulli {
 public:
  explicit Bernoulli(LazyTensor logits);

  const LazyTensor& logits() const { return logits_; }
  LazyTensor probs() const;
  /// Takes booleans, or numbers of which 1 is true and 0 is false.
  LazyTensor log_prob(const LazyTensor& value) const;
  LazyTensor entropy() const;
  /// Draws booleans, without a gradient.
  LazyTensor sample(std::uint64_t seed) const;

 private:
  LazyTensor logits_;
};

LazyTensor kl_divergence(const Bernoulli& p, const Bernoulli& q);

}  // namespace caldera
