#include "ops/loss/ranking.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/index/scatter.h"
#include "ops/linalg/products.h"
#include "ops/loss/class_targets.h"
#include "ops/loss/loss_operands.h"
#include "ops/loss/nll.h"
#include "ops/loss/reduction.h"
#include "ops/nn/activations.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/mean.h"
#include "ops/reduce/statistics.h"

namespace caldera {
namespace {

/// max(||x||, eps) along an axis, which stays.
LazyTensor limited_norm(const LazyTensor& x, int axis, double eps) {
  return maximum(vector_norm(x, axis, 2, true), eps);
}

/// What a target of 1 costs where it is not -1, plus what a target of -1 costs where it is not 1: PyTorch's
/// reading of targets that are neither.
LazyTensor by_sign(const LazyTensor& target, const LazyTensor& together, const LazyTensor& apart) {
  return where(equal(target, -1.0), zeros_like(together), together) +
         where(equal(target, 1.0), zeros_like(apart), apart);
}

/// The p-norms of the rows of x. What vector_norm() would refuse is refused by the name of `op`.
LazyTensor row_norms(const char* op, const LazyTensor& x, double p, bool keepdims) {
  if (std::isnan(p)) throw ValueError(fmt::format("{}: p is nan", op));
  if (std::isinf(p) && x.shape(-1) == 0)
    throw ShapeError(fmt::format("{}: vectors of {} have no element to choose, and p is {}", op,
                                 x.shape().to_string(), p));
  return vector_norm(x, -1, p, keepdims);
}

/// The operands' shape without its last axis: that of the losses of vectors.
Shape vectors(const char* op, const Shape& shape) {
  if (shape.rank() == 0)
    throw ShapeError(fmt::format("{}: {} has no axis of features", op, shape.to_string()));
  Shape rows;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows.push_back(shape[i]);
  return rows;
}

}  // namespace

LazyTensor cosine_similarity(const LazyTensor& a, const LazyTensor& b, AxisIndex axis, double eps) {
  const ops::LossOperands x("cosine_similarity", {a, b});
  const int at = x.shape().normalize_axis(axis, "cosine_similarity");
  // Broadcast ahead of the norms: an operand may lack the axis.
  const LazyTensor left = broadcast_to(x[0], x.shape()), right = broadcast_to(x[1], x.shape());
  const LazyTensor similarity =
      sum(left * right, at, true) / (limited_norm(left, at, eps) * limited_norm(right, at, eps));
  return x.reduced(squeeze(similarity, at), Reduction::none);
}

LazyTensor pairwise_distance(const LazyTensor& a, const LazyTensor& b, double p, double eps, bool keepdims) {
  const ops::LossOperands x("pairwise_distance", {a, b});
  vectors("pairwise_distance", x.shape());
  return x.reduced(row_norms("pairwise_distance", x[0] - x[1] + eps, p, keepdims), Reduction::none);
}

LazyTensor hinge_embedding_loss(const LazyTensor& input, const LazyTensor& target, double margin,
                                Reduction reduction) {
  const ops::LossOperands x("hinge_embedding_loss", {input}, {target});
  const LazyTensor y = x.beside(target, "target");
  return x.reduced(by_sign(y, x[0], relu(margin - x[0])), reduction);
}

LazyTensor margin_ranking_loss(const LazyTensor& a, const LazyTensor& b, const LazyTensor& target,
                               double margin, Reduction reduction) {
  const ops::LossOperands x("margin_ranking_loss", {a, b}, {target});
  return x.reduced(relu(margin - x.beside(target, "target") * (x[0] - x[1])), reduction);
}

LazyTensor soft_margin_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction) {
  const ops::LossOperands x("soft_margin_loss", {input}, {target});
  return x.reduced(-log_sigmoid(x.beside(target, "target") * x[0]), reduction);
}

LazyTensor multilabel_soft_margin_loss(const LazyTensor& input, const LazyTensor& target,
                                       const LazyTensor& weight, Reduction reduction) {
  const char* op = "multilabel_soft_margin_loss";
  if (input.shape() != target.shape())
    throw ShapeError(fmt::format("{}: input {} and target {} must have the same shape", op,
                                 input.shape().to_string(), target.shape().to_string()));
  const ops::LossOperands x(op, {input, target}, {weight});
  vectors(op, x.shape());
  const LazyTensor each =
      binary_cross_entropy_with_logits(x[0], x[1], x.beside(weight, "weight"), Reduction::none);
  return x.reduced(mean(each, -1), reduction);
}

LazyTensor multi_margin_loss(const LazyTensor& input, const LazyTensor& target, int p, double margin,
                             const LazyTensor& weight, Reduction reduction) {
  const ops::ClassTargets classes("multi_margin_loss", input, target);
  const ops::LossOperands x("multi_margin_loss", {input});
  if (p != 1 && p != 2) throw ValueError(fmt::format("multi_margin_loss: p is {}, want 1 or 2", p));
  const LazyTensor excess = relu(margin - expand_dims(classes.chosen(x[0]), -1) + x[0]);
  const LazyTensor others = where(classes.is_target(), zeros_like(excess), p == 1 ? excess : square(excess));
  LazyTensor losses = mean(others, -1);
  if (weight.defined()) losses = losses * classes.chosen(classes.class_weights(weight, losses.dtype()));
  return x.reduced(classes.marked(losses), reduction);
}

LazyTensor multilabel_margin_loss(const LazyTensor& input, const LazyTensor& target, Reduction reduction) {
  const char* const op = "multilabel_margin_loss";
  ops::check_index_type(op, target);
  const ops::LossOperands x(op, {input});
  vectors(op, input.shape());
  if (input.shape() != target.shape())
    throw ShapeError(fmt::format("{}: input {} and target {} must have the same shape", op,
                                 input.shape().to_string(), target.shape().to_string()));
  const std::int64_t classes = input.shape(-1);
  if (classes == 0) throw ShapeError(fmt::format("{}: no classes in {}", op, input.shape().to_string()));
  const LazyTensor index = ops::narrow_indices(op, target, classes, input.device());
  const LazyTensor counts = cummin(index, -1) >= 0;  // those ahead of the first negative one
  const LazyTensor at = where(counts, index, 0);
  // (..., targets, classes): whether a class is that target, and any.
  const LazyTensor same = logical_and(equal(expand_dims(at, -1), arange(classes, DType::i32, input.device())),
                                      expand_dims(counts, -1));
  const LazyTensor is_target = any(same, -2, true);
  const LazyTensor excess =
      relu(1.0 - expand_dims(take_along_axis(x[0], at, -1), -1) + expand_dims(x[0], -2));
  const LazyTensor each = where(logical_and(expand_dims(counts, -1), logical_not(is_target)), excess, 0.0);
  // What no class has is read as NaN, which only classes that are no target would show.
  const LazyTensor lost = any(logical_and(counts, index >= static_cast<int>(classes)), -1);
  const LazyTensor losses = sum(sum(each, -1), -1) / static_cast<double>(classes);
  return x.reduced(where(lost, std::numeric_limits<double>::quiet_NaN(), losses), reduction);
}

LazyTensor triplet_margin_loss(const LazyTensor& anchor, const LazyTensor& positive,
                               const LazyTensor& negative, const TripletMarginOptions& options) {
  const ops::LossOperands x("triplet_margin_loss", {anchor, positive, negative});
  vectors("triplet_margin_loss", x.shape());
  const auto distance = [&](std::size_t i, std::size_t j) {
    return row_norms("triplet_margin_loss", x[i] - x[j] + options.eps, options.p, false);
  };
  LazyTensor apart = distance(0, 2);
  if (options.swap) apart = minimum(apart, distance(1, 2));
  return x.reduced(relu(distance(0, 1) - apart + options.margin), options.reduction);
}

LazyTensor cosine_embedding_loss(const LazyTensor& a, const LazyTensor& b, const LazyTensor& target,
                                 double margin, Reduction reduction) {
  const char* op = "cosine_embedding_loss";
  const ops::LossOperands x(op, {a, b}, {target});
  const Shape rows = vectors(op, x.shape());
  if (target.shape() != rows)
    throw ShapeError(fmt::format("{}: target {} is not one number for each vector of {}", op,
                                 target.shape().to_string(), x.shape().to_string()));
  // PyTorch's way to avoid a division by 0 here is another one than in cosine_similarity.
  constexpr double kEps = 1e-12;
  const auto total = [](const LazyTensor& y) { return sum(y, -1); };
  // Broadcast ahead of the sums: an operand may lack the axis.
  const LazyTensor left = broadcast_to(x[0], x.shape()), right = broadcast_to(x[1], x.shape());
  const LazyTensor similarity =
      total(left * right) / sqrt((total(square(left)) + kEps) * (total(square(right)) + kEps));
  const ops::LossOperands cosine(op, {similarity});
  return x.reduced(by_sign(cosine.beside(target, "target"), 1 - similarity, relu(similarity - margin)),
                   reduction);
}

}  // namespace caldera
