#include "ops/losses.h"

#include <fmt/format.h>

#include <limits>

#include "ops/ops.h"

namespace caldera {

namespace {

void check(const LazyTensor& logits, const LazyTensor& targets, const CrossEntropyOptions& options) {
  const Shape& shape = logits.shape();
  bool fits = shape.rank() == targets.rank() + 1;
  for (int i = 0; fits && i < targets.rank(); ++i) fits = shape[i] == targets.shape()[i];
  if (!fits)
    throw ShapeError(
        fmt::format("cross_entropy: logits {} and targets {} do not fit; logits are (..., classes) and "
                    "targets have the same shape without the last axis",
                    shape.to_string(), targets.shape().to_string()));
  if (shape.back() == 0) throw ShapeError(fmt::format("cross_entropy: no classes in {}", shape.to_string()));
  if (!is_floating(logits.dtype()) || !is_integral(targets.dtype()))
    throw DTypeError(fmt::format("cross_entropy: logits {} and targets {}; want floating and integer",
                                 name(logits.dtype()), name(targets.dtype())));
  // Written so that NaN is refused too.
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    throw ValueError(
        fmt::format("cross_entropy: label_smoothing is {}, want it in [0, 1)", options.label_smoothing));
}

}  // namespace

CrossEntropyTerms cross_entropy_terms(const LazyTensor& logits, const LazyTensor& targets,
                                      const CrossEntropyOptions& options) {
  check(logits, targets, options);
  const std::int64_t classes = logits.shape().back();
  const LazyTensor x = size_of(logits.dtype()) < 4 ? astype(logits, DType::f32) : logits;
  const LazyTensor index = targets.dtype() == DType::i32 ? targets : astype(targets, DType::i32);

  // The loss does not depend on the constant that is subtracted, so no gradient need pass through the max.
  const LazyTensor shifted = x - stop_gradient(max(x, -1, true));
  const LazyTensor log_total = log(sum(exp(shifted), -1));
  // Selecting instead of multiplying by a one-hot row: 0 * -inf would be NaN.
  const LazyTensor is_target = equal(arange(classes, DType::i32, x.device()), expand_dims(index, -1));
  LazyTensor losses = log_total - sum(where(is_target, shifted, zeros_like(shifted)), -1);
  if (options.label_smoothing > 0) {
    const LazyTensor uniform = log_total - mean(shifted, -1);
    losses = losses * (1 - options.label_smoothing) + uniform * options.label_smoothing;
  }

  const LazyTensor inside = logical_and(greater_equal(index, 0), less(index, static_cast<int>(classes)));
  losses = where(inside, losses, full_like(losses, std::numeric_limits<double>::quiet_NaN()));
  if (!options.ignore_index) return {losses, ones_like(losses)};
  // An index that int32 does not hold equals no target.
  if (*options.ignore_index < std::numeric_limits<std::int32_t>::min() ||
      *options.ignore_index > std::numeric_limits<std::int32_t>::max())
    return {losses, ones_like(losses)};
  const LazyTensor ignored = equal(index, static_cast<int>(*options.ignore_index));
  return {where(ignored, zeros_like(losses), losses), where(ignored, zeros_like(losses), ones_like(losses))};
}

LazyTensor weighted_mean(const LazyTensor& values, const LazyTensor& weights) {
  const LazyTensor none = zeros_like(values);
  const LazyTensor total = sum(weights);
  const LazyTensor counted = where(equal(weights, 0.0), none, values * weights);
  return sum(counted) / where(equal(total, 0.0), ones_like(total), total);
}

LazyTensor mean_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                              const CrossEntropyOptions& options) {
  const CrossEntropyTerms terms = cross_entropy_terms(logits, targets, options);
  return weighted_mean(terms.losses, terms.weights);
}

}  // namespace caldera
