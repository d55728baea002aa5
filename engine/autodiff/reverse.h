// Walks a graph from outputs to inputs and computes cotangents: reverse mode. Internal to the transforms.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/autodiff/snapshot.h"
#include "engine/base/error.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Thrown where an operation on the way has no gradient rule. Forward mode may still work.
class NoGradientRule : public GradientError {
 public:
  using GradientError::GradientError;
};

/// Returns the cotangent of each input; an empty tensor where no output depends on it. With Targets::end_walk
/// the walk stops at the inputs: each gets what reaches it, and passes nothing on to other inputs. Throws as
/// vjp does; errors begin with the name of `transform`.
std::vector<LazyTensor> pull_back(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                  std::span<const LazyTensor> cotangents, std::string_view transform,
                                  Targets targets = Targets::are_passed);

/// Throws GradientError unless `output` is one floating number.
void check_scalar(const LazyTensor& output, std::string_view transform);

/// Computes value_and_grad(function, arguments), but returns the gradients of the floating arguments alone.
/// Errors begin with the name of `transform`.
std::pair<LazyTensor, std::vector<LazyTensor>> value_and_gradients(const TensorFunction& function,
                                                                   std::span<const LazyTensor> arguments,
                                                                   std::string_view transform);

}  // namespace caldera
