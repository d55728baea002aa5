// Gated feed-forward layer (Shazeer 2020): down(activation(gate(x)) * up(x)). SwiGLU with silu, GeGLU with
// gelu.
#pragma once

#include <memory>
#include <string>

#include "lm/nn/feed_forward/hidden_act.h"
#include "lm/nn/layers/linear.h"

namespace caldera {

/// Projections "gate_proj", "up_proj" (hidden to intermediate) and "down_proj" (back).
class GatedMLP final : public Layer {
 public:
  /// `activation` is of the gate: silu, or activation_of(config.hidden_act). Throws ShapeError when the
  /// projections do not fit each other.
  GatedMLP(std::unique_ptr<Projection> gate, std::unique_ptr<Projection> up, std::unique_ptr<Projection> down,
           Activation activation);

  /// x (..., hidden) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  std::unique_ptr<Projection> gate_proj;
  std::unique_ptr<Projection> up_proj;
  std::unique_ptr<Projection> down_proj;

 private:
  Activation activation_;
};

/// A gated MLP with one projection to gate and up side by side, and one back, under the family's names:
/// "gate_up_proj" and "down_proj", say.
class FusedGatedMLP final : public Layer {
 public:
  /// Throws ShapeError when the projections do not fit each other.
  FusedGatedMLP(std::string in_name, std::unique_ptr<Projection> in, std::string out_name,
                std::unique_ptr<Projection> out, Activation activation);

  /// x (..., hidden) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  std::string in_name_;
  std::string out_name_;
  std::unique_ptr<Projection> in_;
  std::unique_ptr<Projection> out_;
  Activation activation_;
};

}  // namespace caldera
