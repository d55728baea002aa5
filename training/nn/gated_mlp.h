// Gated feed-forward layer (Shazeer 2020): down(activation(gate(x)) * up(x)). SwiGLU with silu, GeGLU with
// gelu.
#pragma once

#include <memory>

#include "training/nn/hidden_act.h"
#include "training/nn/linear.h"

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

/// The same with one projection "gate_up_proj" to gate and up side by side, and "down_proj".
class FusedGatedMLP final : public Layer {
 public:
  /// Throws ShapeError when the projections do not fit each other.
  FusedGatedMLP(std::unique_ptr<Projection> gate_up, std::unique_ptr<Projection> down, Activation activation);

  /// x (..., hidden) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  std::unique_ptr<Projection> gate_up_proj_;
  std::unique_ptr<Projection> down_proj_;
  Activation activation_;
};

}  // namespace caldera
