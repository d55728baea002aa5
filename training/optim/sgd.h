// SGD: stochastic gradient descent with momentum, with the numerics of torch.optim.SGD.
#pragma once

#include <cstdint>
#include <vector>

#include "training/optim/optimizer.h"

namespace caldera {

struct SGDOptions {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  ///< added to the gradient: an L2 penalty
  bool nesterov = false;
  /// Throws ValueError naming the field that is out of its domain.
  void validate() const;
};

/// With g the gradient plus weight_decay * parameter, and b the buffer (g itself in the first step, then
/// momentum * b + (1 - dampening) * g): parameter - learning_rate * b, or, with Nesterov's momentum,
/// parameter - learning_rate * (g + momentum * b). State: "momentum_buffer", unless momentum is 0.
class SGD final : public Optimizer {
 public:
  /// Throws ValueError for bad options; see also Optimizer.
  explicit SGD(std::vector<Parameter> parameters, const SGDOptions& options = {});

  const SGDOptions& options() const { return options_; }

 protected:
  Updated updated(const Step& step) const override;
  void prepare(const Numbers& numbers) override;

 private:
  SGDOptions options_;
  LazyTensor rate_, decay_, momentum_, fresh_;  // of the present step
  bool decays_ = false;
};

}  // namespace caldera
