#include "lm/nn/experts/expert_routing.h"

#include <fmt/format.h>

#include "lm/nn/precision.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/index/scatter.h"
#include "ops/nn/softmax.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

constexpr double kNotChosen = -1e30;  // below any logit, and finite

/// Boolean (N, experts): whether an expert is among the `chosen` largest of its row.
LazyTensor chosen_ones(const LazyTensor& logits, std::int64_t chosen) {
  const LazyTensor places = topk(stop_gradient(logits), chosen, -1).indices;
  const LazyTensor experts = arange(logits.shape(1), places.dtype(), logits.device());
  const LazyTensor hits = equal(expand_dims(places, 2), reshape(experts, Shape{1, 1, logits.shape(1)}));
  return greater(sum(astype(hits, DType::f32), {1}),
                 LazyTensor::zeros(Shape{1}, DType::f32, logits.device()));
}

void check_choice(const LazyTensor& logits, std::int64_t chosen) {
  if (logits.rank() != 2 || chosen < 1 || chosen > logits.shape(1))
    throw ValueError(
        fmt::format("expert_weights: {} experts a token of logits {}", chosen, logits.shape().to_string()));
}

}  // namespace

ChosenExperts chosen_experts(const LazyTensor& logits, std::int64_t chosen, RoutingWeights form) {
  check_choice(logits, chosen);
  const LazyTensor scores = in_dtype(logits, DType::f32);
  const LazyTensor experts = topk(stop_gradient(scores), chosen, -1).indices;
  const bool of_chosen = form == RoutingWeights::softmax_of_chosen;
  const LazyTensor from = of_chosen ? scores : softmax(scores, -1);
  LazyTensor weights = take_along_axis(from, experts, 1);
  if (of_chosen) weights = softmax(weights, -1);
  if (form == RoutingWeights::softmax_of_all_scaled) weights = weights / sum(weights, {1}, true);
  return {astype(experts, DType::i32), weights};
}

LazyTensor expert_weights(const LazyTensor& logits, std::int64_t chosen, RoutingWeights form) {
  check_choice(logits, chosen);
  const LazyTensor scores = in_dtype(logits, DType::f32);
  const LazyTensor mask = chosen_ones(scores, chosen);
  if (form == RoutingWeights::softmax_of_chosen) return softmax(where(mask, scores, kNotChosen), -1);
  const LazyTensor weights = where(mask, softmax(scores, -1), 0.0);
  return form == RoutingWeights::softmax_of_all ? weights : weights / sum(weights, {1}, true);
}

}  // namespace caldera
