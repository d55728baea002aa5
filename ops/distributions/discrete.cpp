#include "ops/distributions/discrete.h"

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/distributions/parameters.h"
#include "ops/elementwise/exponential.h"
#include "ops/index/scatter.h"
#include "ops/nn/activations.h"
#include "ops/nn/softmax.h"
#include "ops/random/distributions.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/manipulation.h"

namespace caldera {

Categorical::Categorical(LazyTensor logits) : logits_(std::move(logits)) {
  ops::check_floating("Categorical", "logits", logits_);
  if (logits_.rank() == 0)
    throw ShapeError("Categorical: the logits are a number; classes are the last axis");
}

LazyTensor Categorical::log_probs() const { return log_softmax(logits_, -1); }
LazyTensor Categorical::probs() const { return softmax(logits_, -1); }

LazyTensor Categorical::log_prob(const LazyTensor& value) const {
  return squeeze(take_along_axis(log_probs(), expand_dims(value, -1), -1), -1);
}

LazyTensor Categorical::entropy() const {
  const LazyTensor p = probs();
  // A class of probability 0 adds nothing, also where its logarithm is infinite.
  return -sum(where(p > 0.0, p * log_probs(), LazyTensor(0.0)), -1);
}

LazyTensor Categorical::sample(std::uint64_t seed) const { return random_categorical(logits_, seed); }

LazyTensor Categorical::sample(const LazyTensor& uniform) const {
  return astype(argmax(logits_ - log(-log(uniform)), -1), DType::i32);
}

LazyTensor Categorical::mode() const { return astype(argmax(logits_, -1), DType::i32); }

LazyTensor kl_divergence(const Categorical& p, const Categorical& q) {
  const LazyTensor chance = p.probs();
  return sum(where(chance > 0.0, chance * (p.log_probs() - q.log_probs()), LazyTensor(0.0)), -1);
}

Bernoulli::Bernoulli(LazyTensor logits) : logits_(std::move(logits)) {
  ops::check_floating("Bernoulli", "logits", logits_);
}

LazyTensor Bernoulli::probs() const { return sigmoid(logits_); }

LazyTensor Bernoulli::log_prob(const LazyTensor& value) const {
  const LazyTensor x = is_floating(value.dtype()) ? value : astype(value, logits_.dtype());
  return x * log_sigmoid(logits_) + (1.0 - x) * log_sigmoid(-logits_);
}

LazyTensor Bernoulli::entropy() const {
  // Of both outcomes p (-log p), each without cancellation where p is next to 0.
  return -(sigmoid(logits_) * log_sigmoid(logits_) + sigmoid(-logits_) * log_sigmoid(-logits_));
}

LazyTensor Bernoulli::sample(std::uint64_t seed) const {
  return random_bernoulli(stop_gradient(probs()), logits_.shape(), seed);
}

LazyTensor kl_divergence(const Bernoulli& p, const Bernoulli& q) {
  return sigmoid(p.logits()) * (log_sigmoid(p.logits()) - log_sigmoid(q.logits())) +
         sigmoid(-p.logits()) * (log_sigmoid(-p.logits()) - log_sigmoid(-q.logits()));
}

}  // namespace caldera
