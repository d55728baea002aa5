// Gradients against central differences, with PyTorch's semantics (torch.autograd.gradcheck): for users'
// own functions and rules as for the engine's.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/autodiff/function.h"

namespace caldera::testing {

struct GradcheckOptions {
  double eps = 1e-6;   // the step of the differences
  double atol = 1e-5;  // |analytical - numerical| <= atol + rtol * |numerical|
  double rtol = 1e-3;
  /// Compares v^T J u for random v and u (unit vectors) instead of every element of the Jacobian: two
  /// evaluations of the function and one of its gradient for each input, whatever the sizes.
  bool fast = false;
  /// Compares the columns of the Jacobian that jvp makes as well (check_forward_ad of PyTorch).
  bool forward = false;
  /// How far two runs of the same gradient may differ.
  double nondet_tol = 0;
  std::uint64_t seed = 0;  // of the projections, and of gradgradcheck's cotangents
};

/// Whether the check passed; if not, which input and output differ, where, and by how much.
struct GradcheckResult {
  bool passed = true;
  std::string message;

  explicit operator bool() const { return passed; }
};

/// Compares the Jacobian of every floating result with respect to every floating input, made by vjp one row
/// at a time, with central differences; and the gradient with itself, evaluated again. Inputs must be f64
/// for the default tolerances to mean anything: other floating types are refused with DTypeError. Inputs that
/// are not floating are constants. Throws what `function` throws. Inputs at a kink of the function (a tie of
/// max, 0 of abs) fail, as they have no derivative. Thread-safe as far as `function` is.
GradcheckResult gradcheck(const VectorFunction& function, std::span<const LazyTensor> inputs,
                          const GradcheckOptions& options = {});

/// gradcheck of the gradient: of the function that takes the inputs and a cotangent for each floating result
/// and returns what vjp makes of them (reverse over reverse; with `forward`, forward over reverse as well).
/// The cotangents are drawn from a normal distribution.
GradcheckResult gradgradcheck(const VectorFunction& function, std::span<const LazyTensor> inputs,
                              const GradcheckOptions& options = {});

}  // namespace caldera::testing
