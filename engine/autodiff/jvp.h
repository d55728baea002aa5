// Forward-mode differentiation as a graph-to-graph transform: tangents are ordinary lazy tensors.
//
// All of it may be called from any thread, and nested in and around the other transforms to any depth.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera {

/// Tangents of `outputs` along `tangents` of `inputs`: the Jacobian times a vector. Each has the shape and
/// dtype of its output, and is zeros where an output does not depend on the inputs. Walks the graph
/// iteratively. An empty tensor stands for a tangent of zeros. Tangents take the dtypes of their inputs.
/// Throws ShapeError or DeviceError when a tangent has not its input's shape or device (bare numbers fit
/// every device), GradientError for inputs that are not floating, for an operation on the way that has no
/// rule (naming it), and for values on the way that were evaluated before, and ValueError for an empty
/// function, input or output. Errors begin with the name of the transform that was called.
std::vector<LazyTensor> jvp(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                            std::span<const LazyTensor> tangents);

/// function(primals), and its derivative along `tangents`, one tangent a primal. Primals that are not
/// floating take an empty tensor as their tangent. Evaluating inside `function` is allowed. Errors as above.
std::pair<std::vector<LazyTensor>, std::vector<LazyTensor>> jvp(const VectorFunction& function,
                                                                std::span<const LazyTensor> primals,
                                                                std::span<const LazyTensor> tangents);
std::pair<LazyTensor, LazyTensor> jvp(const TensorFunction& function, std::span<const LazyTensor> primals,
                                      std::span<const LazyTensor> tangents);

/// The Hessian of a scalar function times a vector, forward over reverse: the derivative of the gradient with
/// respect to every primal along `tangents`; an empty tensor for a primal that is not floating. What has no
/// tangent rule on the way is a GradientError: there vjp of value_and_grad's gradients gives the same (the
/// Hessian is symmetric). Throws as jvp and value_and_grad do.
std::vector<LazyTensor> hvp(const TensorFunction& function, std::span<const LazyTensor> primals,
                            std::span<const LazyTensor> tangents);

}  // namespace caldera
