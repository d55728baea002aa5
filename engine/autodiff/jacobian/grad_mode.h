// The mode of differentiation as an argument: reverse, forward, or by differences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera {

/// Says how a derivative is made.
enum class GradMode : std::uint8_t {
  automatic,  ///< forward where there is one input element in all, or there are fewer of them than of
              ///< results, else reverse
  reverse,    ///< the chain rule from the result (vjp)
  forward,    ///< the chain rule from the inputs (jvp), one direction an input element
  numeric,    ///< central differences, two evaluations an input element
};

struct GradOptions {
  GradMode mode = GradMode::automatic;
  /// A mode that an operation on the way has no rule for is an error. Otherwise another mode is taken
  /// (reverse for forward and the other way round, then numeric), and one line on standard error names the
  /// operation.
  bool strict = false;
  /// The step of differences; 0: the cube root of the rounding of the input's type.
  double step = 0;
};

/// Gradients of a scalar function with respect to every floating argument; an empty tensor for the others.
/// The function is called once, for all of them together, but for differences. Throws as value_and_grad, and
/// ValueError for a step below 0.
std::vector<LazyTensor> grad(const TensorFunction& function, std::span<const LazyTensor> arguments,
                             const GradOptions& options);
LazyTensor grad(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options);

/// The derivative of every element of function(x) with respect to every element of x: shape result.shape +
/// x.shape. Throws as jacobian of jacobian.h.
LazyTensor jacobian(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options);

/// The second derivatives of a scalar function: shape x.shape + x.shape. The mode is that of the outer
/// derivative, of the gradient in reverse; automatic is forward. Throws as hessian of jacobian.h.
LazyTensor hessian(const UnaryFunction& function, const LazyTensor& x, const GradOptions& options);

}  // namespace caldera
