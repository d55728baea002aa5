#include "training/nn/loss.h"

#include <fmt/format.h>

#include "ops/ops.h"

namespace caldera {
namespace {

CrossEntropyTerms weighted_terms(const LazyTensor& logits, const LazyTensor& targets,
                                 const LazyTensor& weights, const CrossEntropyOptions& options) {
  CrossEntropyTerms terms = cross_entropy_terms(logits, targets, options);
  if (!weights.defined()) return terms;
  if (weights.shape() != targets.shape())
    throw ShapeError(fmt::format("cross_entropy: weights {} do not have the shape of the targets {}",
                                 weights.shape().to_string(), targets.shape().to_string()));
  const LazyTensor own =
      weights.dtype() == terms.losses.dtype() ? weights : astype(weights, terms.losses.dtype());
  // Without an ignored target the terms' weights are all ones: nothing to multiply by.
  terms.weights = options.ignore_index ? terms.weights * own : own;
  return terms;
}

}  // namespace

CrossEntropySum cross_entropy_sum(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options) {
  const CrossEntropyTerms terms = weighted_terms(logits, targets, weights, options);
  // Selected and not only multiplied: a position of weight 0 may hold NaN.
  const LazyTensor counted =
      where(equal(terms.weights, 0.0), zeros_like(terms.losses), terms.losses * terms.weights);
  return {sum(counted), sum(terms.weights)};
}

LazyTensor cross_entropy(const LazyTensor& logits, const LazyTensor& targets, const LazyTensor& weights,
                         const CrossEntropyOptions& options) {
  const CrossEntropyTerms terms = weighted_terms(logits, targets, weights, options);
  return weighted_mean(terms.losses, terms.weights);
}

}  // namespace caldera
