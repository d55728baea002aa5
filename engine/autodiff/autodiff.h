// Reverse-mode differentiation as a graph-to-graph transform: gradients are ordinary lazy tensors.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Cotangents of `inputs` for given cotangents of `outputs`. Walks the graph iteratively; only what is both
/// reached from the inputs and needed by the outputs is differentiated. An input that no output depends on
/// gets zeros. Throws GradientError naming the operation when one on the way has no rule, and when the way
/// leads through a value that was evaluated before (its history is gone; use stop_gradient/detach to say it
/// is a constant, or differentiate first).
std::vector<LazyTensor> vjp(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                            std::span<const LazyTensor> cotangents);

/// Gradients of a scalar with respect to `inputs`, which must be floating. Throws GradientError when `output`
/// is not a scalar or does not depend on one of the inputs.
std::vector<LazyTensor> grad(const LazyTensor& output, std::span<const LazyTensor> inputs);
std::vector<LazyTensor> grad(const LazyTensor& output, std::initializer_list<LazyTensor> inputs);
LazyTensor grad(const LazyTensor& output, const LazyTensor& input);

/// The value of a scalar function and its gradients with respect to every argument (zeros for one that it
/// ignores). Evaluating inside `function` is allowed: nodes built from its arguments keep their history.
std::pair<LazyTensor, std::vector<LazyTensor>> value_and_grad(const TensorFunction& function,
                                                              std::span<const LazyTensor> arguments);

}  // namespace caldera
