// Reverse-mode differentiation as a graph-to-graph transform: gradients are ordinary lazy tensors.
//
// All of it may be called from any thread, also on graphs that other threads build on, evaluate or
// differentiate, and nested in and around the other transforms to any depth. A function is called on the
// calling thread, once. Errors begin with the name of the transform that was called; an empty tensor among
// what it is given, or an empty function, is a ValueError.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Cotangents of `inputs` for given cotangents of `outputs`. Walks the graph iteratively; only what is both
/// reached from the inputs and needed by the outputs is differentiated. An input that no output depends on
/// gets zeros. Cotangents take the dtypes of their outputs. Throws ShapeError or DeviceError when a cotangent
/// has not its output's shape or device (bare numbers fit every device); GradientError for an input that is
/// not floating, and naming the operation when one on the way has no rule, and when the way leads through a
/// value that was evaluated before (its history is gone; use stop_gradient/detach to say it is a constant, or
/// differentiate first).
std::vector<LazyTensor> vjp(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                            std::span<const LazyTensor> cotangents);

/// Gradients of a scalar with respect to `inputs`, which must be floating. Throws GradientError when `output`
/// is not a scalar or does not depend on one of the inputs.
std::vector<LazyTensor> grad(const LazyTensor& output, std::span<const LazyTensor> inputs);
std::vector<LazyTensor> grad(const LazyTensor& output, std::initializer_list<LazyTensor> inputs);
LazyTensor grad(const LazyTensor& output, const LazyTensor& input);

/// The value of a scalar function and its gradients with respect to every argument: zeros for one that it
/// ignores, an empty tensor for one that is not floating (labels, indices), of which not all may be.
/// Evaluating inside `function` is allowed: nodes built from its arguments keep their history. Throws as
/// grad.
std::pair<LazyTensor, std::vector<LazyTensor>> value_and_grad(const TensorFunction& function,
                                                              std::span<const LazyTensor> arguments);

}  // namespace caldera
