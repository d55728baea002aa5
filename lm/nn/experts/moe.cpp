#include "lm/nn/experts/moe.h"

#include <fmt/format.h>

#include "lm/nn/init.h"
#include "lm/nn/precision.h"
#include "ops/core/broadcast.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/linalg/matmul.h"
#include "ops/quantized/quantized_products.h"

namespace caldera {
namespace {

/// x (1 or experts, N, in) times each expert's matrix (in, out): (experts, N, out). Quantised ones are
/// transposed.
LazyTensor by_expert(const LazyTensor& x, const Weight& matrices) {
  if (!matrices.is_quantized()) return matmul(x, cast_like(matrices.tensor, x));
  const std::int64_t experts = matrices.quantized.matrices();
  const LazyTensor numbers = reshape(arange(experts, DType::i32, x.device()), Shape{experts, 1});
  return quantized_matmul_by(broadcast_to(x, Shape{experts, x.shape(1), x.shape(2)}), matrices.quantized,
                             broadcast_to(numbers, Shape{experts, x.shape(1)}));
}

/// Adds up, for each token, the rows y (rows, out) of its experts, each with its weight (tokens, chosen).
LazyTensor weighted(const LazyTensor& y, const ExpertRows& rows, const LazyTensor& weights) {
  const Shape by_token{weights.shape(0), weights.shape(1), y.shape(1)};
  const LazyTensor each = reshape(take(y, rows.places), by_token);
  return sum(each * expand_dims(in_dtype(weights, y.dtype()), 2), {1});
}

}  // namespace

ExpertLayers::ExpertLayers(std::unique_ptr<Linear> router, std::vector<std::unique_ptr<Layer>> experts,
                           Activation activation, std::int64_t chosen, RoutingWeights form)
    : router_(std::move(router)),
      experts_(std::move(experts)),
      activation_(activation),
      chosen_(chosen),
      form_(form) {
  if (static_cast<std::size_t>(router_->out_features()) != experts_.size() || experts_.empty())
    throw ShapeError(fmt::format("ExpertLayers: the router has {} outputs for {} experts",
                                 router_->out_features(), experts_.size()));
}

LazyTensor ExpertLayers::forward(const LazyTensor& x) {
  const LazyTensor tokens = reshape(x, Shape{-1, x.shape(-1)});
  const bool chosen = !is_training() && tokens.shape(0) > 0 && stack_.holds(experts_);
  return reshape(chosen ? of_chosen(tokens) : of_all(tokens), x.shape());
}

LazyTensor ExpertLayers::of_chosen(const LazyTensor& tokens) {
  const ChosenExperts to = chosen_experts(router_->forward(tokens), chosen_, form_);
  const ExpertRows rows = ExpertRows::of(to.experts);
  const auto product = [&](const LazyTensor& x, ExpertStack::Which which) {
    return quantized_matmul_by(x, stack_[which], rows.experts);
  };
  const LazyTensor x = take(tokens, rows.tokens);
  const LazyTensor inner = activation_(product(x, ExpertStack::gate)) * product(x, ExpertStack::up);
  return weighted(product(inner, ExpertStack::down), rows, to.weights);
}

LazyTensor ExpertLayers::of_all(const LazyTensor& tokens) {
  const LazyTensor weights = expert_weights(router_->forward(tokens), chosen_, form_);
  LazyTensor y;
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    const auto place = static_cast<std::int64_t>(e);
    const LazyTensor weight = in_dtype(slice(weights, 1, place, place + 1), tokens.dtype());
    const LazyTensor part = experts_[e]->forward(tokens) * weight;
    y = y.defined() ? y + part : part;
  }
  return y;
}

void ExpertLayers::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(join_name(prefix, "gate"), *router_);
  for (std::size_t e = 0; e < experts_.size(); ++e)
    visitor.module(join_name(prefix, fmt::format("experts.{}", e)), *experts_[e]);
}

StackedExperts::StackedExperts(const Sizes& sizes, double limit, double std, std::uint64_t seed,
                               Device device)
    : sizes_(sizes),
      limit_(limit),
      router_(sizes.hidden, sizes.experts, true, std, mix_seed(seed, 0), device),
      gate_up_proj_{
          normal_init(Shape{sizes.experts, sizes.hidden, 2 * sizes.width}, std, mix_seed(seed, 1), device)},
      gate_up_proj_bias_{LazyTensor::zeros(Shape{sizes.experts, 2 * sizes.width}, DType::f32, device)},
      down_proj_{
          normal_init(Shape{sizes.experts, sizes.width, sizes.hidden}, std, mix_seed(seed, 2), device)},
      down_proj_bias_{LazyTensor::zeros(Shape{sizes.experts, sizes.hidden}, DType::f32, device)} {}

LazyTensor StackedExperts::activated(const LazyTensor& gate_up) const {
  Shape half = gate_up.shape();
  half[half.rank() - 1] = sizes_.width;
  Shape split = half;
  split.push_back(2);
  const LazyTensor pairs = reshape(gate_up, split);
  const auto part = [&](std::int64_t i) { return reshape(slice(pairs, -1, i, i + 1), half); };
  const LazyTensor gate = minimum(part(0), limit_);
  const LazyTensor up = maximum(minimum(part(1), limit_), -limit_);
  return (up + 1) * gate * sigmoid(gate * 1.702);
}

LazyTensor StackedExperts::forward(const LazyTensor& x) {
  const LazyTensor tokens = reshape(x, Shape{-1, x.shape(-1)});
  const bool chosen =
      !is_training() && tokens.shape(0) > 0 && gate_up_proj_.is_quantized() && down_proj_.is_quantized();
  return reshape(chosen ? of_chosen(tokens) : of_all(tokens), x.shape());
}

LazyTensor StackedExperts::of_chosen(const LazyTensor& tokens) {
  const ChosenExperts to =
      chosen_experts(router_.forward(tokens), sizes_.chosen, RoutingWeights::softmax_of_chosen);
  const ExpertRows rows = ExpertRows::of(to.experts);
  const auto product = [&](const LazyTensor& x, const Weight& matrices, const Weight& bias) {
    return quantized_matmul_by(x, matrices.quantized, rows.experts) +
           take(cast_like(bias.tensor, x), rows.experts);
  };
  const LazyTensor inner = activated(product(take(tokens, rows.tokens), gate_up_proj_, gate_up_proj_bias_));
  return weighted(product(inner, down_proj_, down_proj_bias_), rows, to.weights);
}

LazyTensor StackedExperts::of_all(const LazyTensor& rows) {
  const LazyTensor tokens = reshape(rows, Shape{1, -1, sizes_.hidden});
  const LazyTensor weights =
      expert_weights(router_.forward(rows), sizes_.chosen, RoutingWeights::softmax_of_chosen);
  const auto with_bias = [&](const LazyTensor& y, const Weight& bias) {
    return y + expand_dims(cast_like(bias.tensor, rows), 1);
  };
  const LazyTensor gate_up = with_bias(by_expert(tokens, gate_up_proj_), gate_up_proj_bias_);
  const LazyTensor each = with_bias(by_expert(activated(gate_up), down_proj_), down_proj_bias_);
  const LazyTensor of_expert = expand_dims(in_dtype(transpose(weights), rows.dtype()), 2);
  return sum(each * of_expert, {0});
}

void StackedExperts::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(join_name(prefix, "router"), router_);
  const std::string experts = join_name(prefix, "experts");
  visitor.matrix(join_name(experts, "gate_up_proj"), gate_up_proj_);
  visitor.parameter(join_name(experts, "gate_up_proj_bias"), gate_up_proj_bias_);
  visitor.matrix(join_name(experts, "down_proj"), down_proj_);
  visitor.parameter(join_name(experts, "down_proj_bias"), down_proj_bias_);
}

}  // namespace caldera
