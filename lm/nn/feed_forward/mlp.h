// Feed-forward layer of two projections: out(activation(in(x))).
#pragma once

#include <memory>
#include <string>

#include "lm/nn/feed_forward/hidden_act.h"
#include "lm/nn/layers/linear.h"

namespace caldera {

/// The projections have the names that the family gives them: "c_fc" and "c_proj", say.
class MLP final : public Layer {
 public:
  /// Throws ShapeError when the projections do not fit each other.
  MLP(std::string in_name, std::unique_ptr<Projection> in, std::string out_name,
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
