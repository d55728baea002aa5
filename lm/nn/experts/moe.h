// Feed-forward layers of experts: a router sends each token to some of them.
//
// A model that is run and not trained computes for a token the experts that were chosen for it, and reads no
// others, where their matrices are frozen: rows of tokens are sorted by expert, and one product multiplies
// each run of rows with its expert's matrix (quantized_matmul_by). Else every expert is computed for every
// token, and counts with its weight, which is zero for most: the same sum, at what a dense layer of all
// experts costs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lm/nn/experts/expert_routing.h"
#include "lm/nn/experts/expert_stack.h"
#include "lm/nn/feed_forward/hidden_act.h"
#include "lm/nn/layers/linear.h"

namespace caldera {

/// Experts that are layers of their own (Qwen3-MoE): gated MLPs with `activation`. Parameters "gate.weight"
/// (experts, hidden) of the router, and "experts.0...." of each.
class ExpertLayers final : public Layer {
 public:
  ExpertLayers(std::unique_ptr<Linear> router, std::vector<std::unique_ptr<Layer>> experts,
               Activation activation, std::int64_t chosen, RoutingWeights form);

  /// x (B, T, hidden) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  LazyTensor of_all(const LazyTensor& tokens);
  LazyTensor of_chosen(const LazyTensor& tokens);

  std::unique_ptr<Linear> router_;
  std::vector<std::unique_ptr<Layer>> experts_;
  ExpertStack stack_;
  Activation activation_;
  std::int64_t chosen_;
  RoutingWeights form_;
};

/// The experts of gpt-oss: their matrices are in one tensor. With g and u the even and odd outputs of
/// gate_up, g at most `limit` and u within +-limit, an expert gives down((u + 1) * g * sigmoid(1.702 g)).
/// Parameters "router.weight", "router.bias", and "experts.": "gate_up_proj" (experts, hidden, 2 * width),
/// "gate_up_proj_bias" (experts, 2 * width), "down_proj" (experts, width, hidden), "down_proj_bias" (experts,
/// hidden).
class StackedExperts final : public Layer {
 public:
  struct Sizes {
    std::int64_t hidden = 0;
    std::int64_t width = 0;
    std::int64_t experts = 0;
    std::int64_t chosen = 0;
  };
  /// Random weights, normal(0, std), biases zero; not computed yet.
  StackedExperts(const Sizes& sizes, double limit, double std, std::uint64_t seed, Device device);

  /// x (B, T, hidden) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  LazyTensor activated(const LazyTensor& gate_up) const;
  LazyTensor of_all(const LazyTensor& tokens);
  LazyTensor of_chosen(const LazyTensor& tokens);

  Sizes sizes_;
  double limit_;
  Linear router_;
  Weight gate_up_proj_;
  Weight gate_up_proj_bias_;
  Weight down_proj_;
  Weight down_proj_bias_;
};

}  // namespace caldera
