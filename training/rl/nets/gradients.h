// Gradients of a loss by the mode that one asks for, inside of a function that is traced.
#pragma once

#include <span>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/autodiff/jacobian/grad_mode.h"

namespace caldera::rl {

/// Holds a loss and its gradients with respect to all parameters.
struct LossGradients {
  LazyTensor loss;
  std::vector<LazyTensor> grads;
};

/// Differentiates in reverse for GradMode::reverse and automatic. Forward costs a direction an element of the
/// parameters: of use to compare, with small networks. Throws ValueError for differences, which have no
/// graph.
LossGradients loss_gradients(const TensorFunction& loss, std::span<const LazyTensor> parameters,
                             GradMode mode);

/// Throws ValueError that names the agent where its mode is numeric.
void check_grad_mode(const char* agent, GradMode mode);

}  // namespace caldera::rl
