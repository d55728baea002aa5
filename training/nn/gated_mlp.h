// SwiGLU feed-forward layer (Shazeer 2020): down(silu(gate(x)) * up(x)).
#pragma once

#include <memory>

#include "training/nn/linear.h"

namespace caldera {

/// Projections "gate_proj", "up_proj" (hidden to intermediate) and "down_proj" (back).
class SwiGLU final : public Layer {
 public:
  /// Throws ShapeError when the projections do not fit each other.
  SwiGLU(std::unique_ptr<Projection> gate, std::unique_ptr<Projection> up, std::unique_ptr<Projection> down);

  /// x (..., hidden) to the same shape.
  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  std::unique_ptr<Projection> gate_proj;
  std::unique_ptr<Projection> up_proj;
  std::unique_ptr<Projection> down_proj;
};

}  // namespace caldera
