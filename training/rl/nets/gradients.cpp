#include "training/rl/nets/gradients.h"

#include <string>

#include "engine/autodiff/autodiff.h"
#include "engine/base/error.h"

namespace caldera::rl {

void check_grad_mode(const char* agent, GradMode mode) {
  if (mode == GradMode::numeric)
    throw ValueError(
        std::string(agent) +
        ": differences are evaluated on the host, and an update is one plan; choose reverse or forward");
}

LossGradients loss_gradients(const TensorFunction& loss, std::span<const LazyTensor> parameters,
                             GradMode mode) {
  check_grad_mode("loss_gradients", mode);
  const LazyTensor value = loss(parameters);
  if (mode == GradMode::forward) return {value, grad(loss, parameters, {.mode = mode, .strict = true})};
  return {value, grad(value, parameters)};
}

}  // namespace caldera::rl
