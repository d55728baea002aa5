// Routing of tokens to experts: which of them a token goes to, and how much each counts.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Says how the weights of the chosen experts are made of the router's logits.
enum class RoutingWeights : std::uint8_t {
  softmax_of_all,         ///< softmax over all experts; those of the chosen ones are taken
  softmax_of_all_scaled,  ///< and divided by their sum
  softmax_of_chosen       ///< softmax over the chosen ones alone
};

/// The experts that tokens go to, (N, chosen), the one with the largest logit first, and their weights in
/// f32.
struct ChosenExperts {
  LazyTensor experts;  ///< i32
  LazyTensor weights;
};
/// Chooses by logits (N, experts). Gradients reach the logits through the weights. Throws ValueError unless
/// 1 <= chosen <= experts.
ChosenExperts chosen_experts(const LazyTensor& logits, std::int64_t chosen, RoutingWeights form);

/// logits (N, experts) to weights (N, experts) in f32, zero for all but the `chosen` largest of each row.
/// Gradients reach the logits through the weights. Throws ValueError unless 1 <= chosen <= experts.
LazyTensor expert_weights(const LazyTensor& logits, std::int64_t chosen, RoutingWeights form);

}  // namespace caldera
