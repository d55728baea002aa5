#include "ops/loss/cross_entropy.h"

#include <fmt/format.h>

#include <vector>

#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/sign.h"
#include "ops/loss/class_targets.h"
#include "ops/loss/loss_operands.h"
#include "ops/loss/reduction.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/mean.h"

namespace caldera {

namespace {

CrossEntropyTerms terms_of(const char* op, const LazyTensor& logits, const LazyTensor& targets,
                           const CrossEntropyOptions& options) {
  const ops::ClassTargets classes(op, logits, targets, options.ignore_index);
  // Written so that NaN is refused too.
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw ValueError(
        fmt::format("{}: label_smoothing is {}, want it in [0, 1]", op, options.label_smoothing));
  const LazyTensor x = astype(logits, compute_type(logits.dtype()));

  // The loss does not depend on the constant that is subtracted, so no gradient need pass through the max.
  const LazyTensor shifted = x - stop_gradient(max(x, -1, true));
  const LazyTensor log_total = log(sum(exp(shifted), -1));
  LazyTensor losses = log_total - classes.chosen(shifted);
  LazyTensor weights = ones_like(losses);
  LazyTensor weight;
  if (options.weight.defined()) {
    weight = classes.class_weights(options.weight, x.dtype());
    weights = classes.chosen(weight);
    losses = losses * weights;
  }
  if (options.label_smoothing > 0) {
    const LazyTensor uniform = weight.defined() ? log_total * mean(weight) - mean(shifted * weight, -1)
                                                : log_total - mean(shifted, -1);
    losses = losses * (1 - options.label_smoothing) + uniform * options.label_smoothing;
  }
  return {classes.marked(losses), classes.counted(weights)};
}

/// x with the axis of its classes last.
LazyTensor with_classes_last(const char* op, const LazyTensor& x, int given) {
  if (x.rank() == 0) return x;  // ClassTargets refuses it
  const int axis = x.shape().normalize_axis(given, op);
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  return axis == x.rank() - 1 ? x : permute_dims(x, order);
}

/// The cross-entropy of floating targets, of the logits' shape.
LazyTensor of_probabilities(const LazyTensor& logits, const LazyTensor& targets,
                            const CrossEntropyLossOptions& options) {
  const char* const op = "cross_entropy";
  if (logits.rank() == 0 || logits.shape().back() == 0)
    throw ShapeError(fmt::format("{}: no classes in {}", op, logits.shape().to_string()));
  if (!is_floating(logits.dtype()))
    throw DTypeError(fmt::format("{}: logits are {}, want floating", op, name(logits.dtype())));
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw ValueError(
        fmt::format("{}: label_smoothing is {}, want it in [0, 1]", op, options.label_smoothing));
  const LazyTensor given = with_classes_last(op, logits, options.axis);
  const DType type = compute_type(given.dtype());
  const auto classes = static_cast<double>(given.shape().back());
  LazyTensor p = astype(with_classes_last(op, targets, options.axis), type);
  if (options.label_smoothing > 0) p = p * (1 - options.label_smoothing) + options.label_smoothing / classes;
  if (options.weight.defined()) {
    if (options.weight.shape() != Shape{given.shape().back()})
      throw ShapeError(fmt::format("{}: weight {} is not one factor for each of {} classes", op,
                                   options.weight.shape().to_string(), given.shape().back()));
    p = p * astype(options.weight, type);
  }
  const LazyTensor x = astype(given, type), shifted = x - stop_gradient(max(x, -1, true));
  const LazyTensor losses = sum(p * (log(sum(exp(shifted), -1, true)) - shifted), -1);
  return ops::reduced(losses, options.reduction);
}

}  // namespace

CrossEntropyTerms cross_entropy_terms(const LazyTensor& logits, const LazyTensor& targets,
                                      const CrossEntropyOptions& options) {
  return terms_of("cross_entropy", logits, targets, options);
}

LazyTensor CrossEntropyTerms::mean() const { return ops::weighted_ratio(losses, weights); }

LazyTensor weighted_mean(const LazyTensor& given, const LazyTensor& factors) {
  for (const DType type : {ops::dtype_beside(given, factors), ops::dtype_beside(factors, given)})
    ops::check_domain("weighted_mean", ScalarDomain::floating, type);
  const auto [values, weights] =
      ops::paired("weighted_mean", given, factors, ops::common_type(given, factors));
  const Shape shape = broadcast_shapes(values.shape(), weights.shape(), "weighted_mean");
  const LazyTensor each = broadcast_to(weights, shape), x = broadcast_to(values, shape);
  // NaN and infinities of weight 0 are replaced ahead of the product, so that they spoil no gradient either.
  const LazyTensor skipped = logical_and(equal(each, 0.0), logical_not(isfinite(x)));
  return ops::weighted_ratio(where(skipped, zeros_like(x), x) * each, each);
}

LazyTensor mean_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                              const CrossEntropyOptions& options) {
  return terms_of("mean_cross_entropy", logits, targets, options).mean();
}

LazyTensor cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                         const CrossEntropyLossOptions& options) {
  if (is_floating(targets.dtype()) && targets.shape() == logits.shape())
    return of_probabilities(logits, targets, options);
  const CrossEntropyTerms terms =
      terms_of("cross_entropy", with_classes_last("cross_entropy", logits, options.axis), targets,
               {.ignore_index = options.ignore_index,
                .label_smoothing = options.label_smoothing,
                .weight = options.weight});
  return options.reduction == Reduction::mean ? terms.mean() : ops::reduced(terms.losses, options.reduction);
}

LazyTensor nll_loss(const LazyTensor& log_probabilities, const LazyTensor& targets,
                    const NllOptions& options) {
  const LazyTensor x = with_classes_last("nll_loss", log_probabilities, options.axis);
  const ops::ClassTargets classes("nll_loss", x, targets, options.ignore_index);
  LazyTensor losses = -astype(classes.taken(x), compute_type(x.dtype()));
  LazyTensor weights = ones_like(losses);
  if (options.weight.defined()) {
    weights = classes.taken(classes.class_weights(options.weight, losses.dtype()));
    losses = losses * weights;
  }
  losses = classes.counted(losses);
  const LazyTensor result = options.reduction == Reduction::mean
                                ? ops::weighted_ratio(losses, classes.counted(weights))
                                : ops::reduced(losses, options.reduction);
  return astype(result, x.dtype());
}

}  // namespace caldera
