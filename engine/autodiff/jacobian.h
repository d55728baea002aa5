// Whole derivatives of small functions, by vmap over a basis: no loop over its elements.
#pragma once

#include <cstdint>

#include "engine/autodiff/function.h"

namespace caldera {

/// Which way a Jacobian is made: a row for each element of the result, by vjp, or a column for each element
/// of the argument, by jvp. `smaller` takes whichever are fewer, forward if there are as many.
enum class JacobianMode : std::uint8_t { smaller, reverse, forward };

/// The derivative of every element of function(x) with respect to every element of x, of shape
/// result.shape + x.shape. Zeros where the result does not depend on x. Throws GradientError when x or the
/// result is not floating, or an operation on the way has no rule, and ShapeError when the Jacobian (or an
/// intermediate value for the whole basis) would have more than kMaxRank axes. Nests with all transforms;
/// evaluating inside of `function` is allowed.
LazyTensor jacobian(const UnaryFunction& function, const LazyTensor& x,
                    JacobianMode mode = JacobianMode::smaller);
UnaryFunction jacobian(UnaryFunction function, JacobianMode mode = JacobianMode::smaller);

/// The second derivatives of a scalar function, of shape x.shape + x.shape, forward over reverse. Throws as
/// jacobian does, and GradientError when the result is not one number.
LazyTensor hessian(const UnaryFunction& function, const LazyTensor& x);
UnaryFunction hessian(UnaryFunction function);

}  // namespace caldera
