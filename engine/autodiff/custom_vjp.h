// custom_vjp: functions with a gradient rule of their own, composable with all other transforms.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/autodiff/function.h"

namespace caldera {

/// A function and its derivatives. Rules are given the arguments, the results, and what comes to them, so
/// what they need is built from these (equal parts of forward and backward are computed once) and what they
/// give can be differentiated again. An empty tensor in what a rule gives stands for zeros.
struct CustomVjp {
  using Rule = std::function<std::vector<LazyTensor>(std::span<const LazyTensor> arguments,
                                                     std::span<const LazyTensor> results,
                                                     std::span<const LazyTensor> along)>;
  std::string name = "custom_vjp";  // for messages
  VectorFunction forward;
  /// Cotangents of the arguments from those of the results, which are zeros where nothing depends on one.
  Rule backward;
  /// Optional: tangents of the results from those of the arguments, which are zeros where there are none.
  /// Without it, forward-mode differentiation is a GradientError that names the function.
  Rule tangent = {};
};

/// A function that computes what rule.forward does and is differentiated by rule.backward. No gradient passes
/// through the inside of `forward`; one that would reach it past the arguments, through a tensor that it
/// captured, is a GradientError. Evaluating inside of `forward` is allowed.
///
/// Throws ValueError when forward or backward is missing. What a rule gives must fit what it is for, or
/// differentiation is an error that names the function and the position: ShapeError for another number of
/// tensors or other shapes, DTypeError for integers or booleans (another floating type is converted),
/// DeviceError for another device. Bare numbers fit every device.
///
/// Under vmap the rules are mapped with the function: they are called on one example, once for all. They may
/// capture what is the same for every example; one that captured a mapped tensor is a GradientError when it
/// is used from outside of the mapped function (pass the tensor as an argument).
///
/// The rule is shared by the graph's nodes and lives as long as one of them can be differentiated. It may be
/// called from any thread that differentiates them.
VectorFunction custom_vjp(CustomVjp rule);

/// Makes a function of one result: backward(arguments, result, cotangent).
TensorFunction custom_vjp(
    TensorFunction forward,
    std::function<std::vector<LazyTensor>(std::span<const LazyTensor> arguments, const LazyTensor& result,
                                          const LazyTensor& cotangent)>
        backward,
    std::string name = "custom_vjp");

}  // namespace caldera
