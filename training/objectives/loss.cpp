#include "training/objectives/loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "lm/nn/precision.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/loss/cross_entropy.h"

namespace caldera {
namespace {

void check_weights(const char* op, const LazyTensor& weights, const LazyTensor& targets) {
  if (weights.defined() && weights.shape() != targets.shape())
    throw ShapeError(
        fmt::format("{}: weights {} do not have the shape of the targets {}; give one weight for each target",
                    op, weights.shape().to_string(), targets.shape().to_string()));
}

CrossEntropyTerms weighted_terms(const LazyTensor& logits, const LazyTensor& targets,
                                 const LazyTensor& weights, const CrossEntropyOptions& options) {
  CrossEntropyTerms terms = cross_entropy_terms(logits, targets, options);
  if (!weights.defined()) return terms;
  check_weights("cross_entropy", weights, targets);
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

CrossEntropySum head_cross_entropy_sum(const LazyTensor& hidden, std::int64_t classes, const Head& head,
                                       const LazyTensor& targets, const LazyTensor& weights,
                                       const CrossEntropyOptions& options, std::int64_t most_bytes) {
  const Shape& shape = hidden.shape();
  if (shape.rank() != targets.rank() + 1 ||
      !std::ranges::equal(shape.span().first(static_cast<std::size_t>(targets.rank())),
                          targets.shape().span()))
    throw ShapeError(
        fmt::format("head_cross_entropy_sum: hidden states {} do not fit the targets {}; give hidden states "
                    "the shape of the targets and one more axis, the features that the head reads",
                    shape.to_string(), targets.shape().to_string()));
  check_weights("head_cross_entropy_sum", weights, targets);
  const std::int64_t rows = targets.shape().numel();
  const std::int64_t at_a_time =
      std::max<std::int64_t>(1, most_bytes / std::max<std::int64_t>(1, 4 * classes));
  const std::int64_t parts = std::max<std::int64_t>(1, (rows + at_a_time - 1) / at_a_time);
  const auto flat = [&](const LazyTensor& x) { return x.rank() == 1 ? x : reshape(x, Shape{rows}); };
  const LazyTensor all = reshape(hidden, Shape{rows, hidden.shape(-1)});
  CrossEntropySum sums;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t begin = rows * i / parts, end = rows * (i + 1) / parts;
    const auto part = [&](const LazyTensor& x) { return parts == 1 ? x : slice(x, 0, begin, end); };
    const LazyTensor logits = head(part(all));
    const CrossEntropySum own =
        cross_entropy_sum(is_16bit_float(logits.dtype()) ? astype(logits, DType::f32) : logits,
                          part(flat(targets)), weights.defined() ? part(flat(weights)) : weights, options);
    sums = i == 0 ? own : CrossEntropySum{sums.loss + own.loss, sums.weight + own.weight};
  }
  return sums;
}

LazyTensor weighted_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                                  const LazyTensor& weights, const CrossEntropyOptions& options) {
  return weighted_terms(logits, targets, weights, options).mean();
}

}  // namespace caldera
