// Gradients against central differences, with PyTorch's semantics (torch.autograd.gradcheck): for users'
// own functions and rules as for the engine's. docs/guide/transforms.md shows how to check a custom_vjp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera::testing {

struct GradcheckOptions {
  double eps = 1e-6;   // the step of the differences, above 0
  double atol = 1e-5;  // |analytical - numerical| <= atol + rtol * |numerical|
  double rtol = 1e-3;
  /// Compares v^T J u for random v and u (unit vectors) instead of every element of the Jacobian: two
  /// evaluations of the function for each input and two of its gradient, whatever the sizes.
  bool fast = false;
  /// Compares the columns of the Jacobian that jvp makes as well (check_forward_ad of PyTorch).
  bool forward = false;
  /// Bounds how far two runs of the function, or of its gradient, may differ at the same inputs.
  double nondet_tol = 0;
  std::uint64_t seed = 0;  // of the projections, and of gradgradcheck's cotangents
};

/// Whether the check passed; if not, which input and output differ, where, and by how much.
struct [[nodiscard]] GradcheckResult {
  bool passed = true;
  std::string message;

  explicit operator bool() const { return passed; }
};

template <class F>
concept FunctionOfOneTensor = std::is_invocable_r_v<LazyTensor, F&, const LazyTensor&>;
template <class F>
concept FunctionOfTensors = std::is_invocable_r_v<LazyTensor, F&, std::span<const LazyTensor>> ||
    std::is_invocable_r_v<std::vector<LazyTensor>, F&, std::span<const LazyTensor>>;

/// The function to check, of any of the kinds that transforms take (function.h): one tensor to one, a list to
/// one, a list to a list.
class CheckedFunction {
 public:
  template <class F>
  requires FunctionOfOneTensor<F> || FunctionOfTensors<F> CheckedFunction(F function)
      : on_lists_(on_lists(std::move(function))) {}

  /// The function as one of lists. That of a function of one tensor throws ValueError for a list of others.
  const VectorFunction& on_lists() const { return on_lists_; }

 private:
  template <FunctionOfOneTensor F>
  static VectorFunction on_lists(F function) {
    return of_one_tensor(std::move(function));
  }
  template <class F>
  static VectorFunction on_lists(F function) {
    if constexpr (std::is_invocable_r_v<LazyTensor, F&, std::span<const LazyTensor>>) {
      return as_vector_function(std::move(function));
    } else {
      return VectorFunction(std::move(function));
    }
  }
  static VectorFunction of_one_tensor(UnaryFunction function);

  VectorFunction on_lists_;
};

/// Compares the Jacobian of every floating result with respect to every floating input, made by vjp one row
/// at a time, with central differences. Inputs that are not floating are constants. A failed check is a
/// result, not an exception:
///  - the analytical and the numerical derivative differ by more than the tolerances. Infinities agree with
///    themselves, NaN with nothing. Rules are given cotangents and tangents that are no whole numbers, and
///    negative, so that one that rounds them, or is not linear in them, shows;
///  - no derivative could be made (with its error): an operation without a rule, a custom_vjp without a
///    `tangent` under `forward`, a rule that gives the wrong number of tensors or wrong shapes;
///  - the function is not deterministic: called again with the same inputs it, or its gradient, gives other
///    values (see nondet_tol), or a later call gives another number of results, other shapes or other dtypes.
///
/// At a kink, where there is no derivative, central differences give the mean of the slopes on both sides. A
/// rule that gives that mean passes there (0 of abs; ties of two in maximum, in amax and in max of a whole
/// tensor); one that takes a side fails (0 of relu, ties of max along an axis). A result narrower than f64
/// fails, as its rounding hides the step.
///
/// `function` is called many times: on leaves of its own for the differences, and on traced arguments, as by
/// value_and_grad and jvp, for the derivatives. So it may evaluate inside.
///
/// Throws ValueError when there is nothing to check (no floating input, or no floating result), a function of
/// one tensor is given several, or eps is not above 0; DTypeError for floating inputs other than f64, for
/// which the tolerances would mean nothing; and what `function` throws. Thread-safe as far as `function` is.
GradcheckResult gradcheck(const CheckedFunction& function, std::span<const LazyTensor> inputs,
                          const GradcheckOptions& options = {});
GradcheckResult gradcheck(const CheckedFunction& function, std::initializer_list<LazyTensor> inputs,
                          const GradcheckOptions& options = {});
GradcheckResult gradcheck(const CheckedFunction& function, const LazyTensor& input,
                          const GradcheckOptions& options = {});

/// gradcheck of the gradient: of the function that takes the inputs and a cotangent for each floating result
/// and returns what vjp makes of them, a result for each floating input (reverse over reverse; with
/// `forward`, forward over reverse as well). The cotangents are drawn from a normal distribution. Its
/// messages count those inputs and results. Throws as gradcheck does.
GradcheckResult gradgradcheck(const CheckedFunction& function, std::span<const LazyTensor> inputs,
                              const GradcheckOptions& options = {});
GradcheckResult gradgradcheck(const CheckedFunction& function, std::initializer_list<LazyTensor> inputs,
                              const GradcheckOptions& options = {});
GradcheckResult gradgradcheck(const CheckedFunction& function, const LazyTensor& input,
                              const GradcheckOptions& options = {});

}  // namespace caldera::testing
