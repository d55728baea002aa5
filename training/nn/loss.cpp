#include "training/nn/loss.h"

#include <fmt/format.h>

#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/loss/cross_entropy.h"

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
  // Selected and not only multiplied: a position of weight 0 may hold NaN.
  terms.losses = where(equal(own, 0.0), zeros_like(terms.losses), terms.losses * own);
  // Else the terms' weights are all ones: nothing to multiply by.
  const bool weighted = options.ignore_index || options.weight.defined();
  terms.weights = weighted ? terms.weights * own : own;
  return terms;
}

}  // namespace

CrossEntropySum cross_entropy_sum(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options) {
  const CrossEntropyTerms terms = weighted_terms(logits, targets, weights, options);
  return {sum(terms.losses), sum(terms.weights)};
}

LazyTensor weighted_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options) {
  return weighted_terms(logits, targets, weights, options).mean();
}

}  // namespace caldera
