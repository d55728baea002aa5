// Whole derivatives of small functions, by vmap over a basis: no loop over its elements, but where something
// on the way cannot be mapped.
//
// All of it may be called from any thread if the function may, and nested in and around the other transforms
// to any depth. Evaluating inside of the function is allowed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera {

/// Which way a Jacobian is made: a row for each element of the result, by vjp, or a column for each element
/// of the argument, by jvp. `smaller` takes whichever are fewer, forward if there are as many; but reverse
/// where something on the way has no tangent rule (a custom_vjp without `tangent`).
enum class JacobianMode : std::uint8_t { smaller, reverse, forward };

/// The derivative of every element of function(x) with respect to every element of x, of shape
/// result.shape + x.shape, and of the dtype of x whatever the result's is. Zeros where the result does not
/// depend on x. Throws GradientError when x or the result is not floating, or an operation on the way has no
/// rule, ShapeError when the Jacobian (or an intermediate value for the whole basis) would have more than
/// kMaxRank axes, and ValueError for an empty function, argument or result.
LazyTensor jacobian(const UnaryFunction& function, const LazyTensor& x,
                    JacobianMode mode = JacobianMode::smaller);
UnaryFunction jacobian(UnaryFunction function, JacobianMode mode = JacobianMode::smaller);

/// Computes the Jacobian of each result (first index) with respect to each argument (second index), as above.
/// Empty tensors for arguments that are not floating, of which there must be one that is. `smaller` counts
/// the elements of all results against those of all arguments.
std::vector<std::vector<LazyTensor>> jacobian(const VectorFunction& function,
                                              std::span<const LazyTensor> arguments,
                                              JacobianMode mode = JacobianMode::smaller);

/// The second derivatives of a scalar function, of shape x.shape + x.shape. Forward over reverse, or reverse
/// over reverse where something on the way has no tangent rule, as with JacobianMode::smaller. (To choose:
/// jacobian(jacobian(function, JacobianMode::reverse), x, JacobianMode::reverse) needs gradient rules alone.)
/// Throws as jacobian does, and GradientError when the result is not one number.
LazyTensor hessian(const UnaryFunction& function, const LazyTensor& x);
UnaryFunction hessian(UnaryFunction function);

/// Block [i][k] has the derivatives with respect to arguments i and k, of shape x_i.shape + x_k.shape and the
/// dtype of x_k. Empty tensors where one of the two is not floating.
std::vector<std::vector<LazyTensor>> hessian(const TensorFunction& function,
                                             std::span<const LazyTensor> arguments);

}  // namespace caldera
