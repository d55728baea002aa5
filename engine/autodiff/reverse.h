// The walk of reverse-mode differentiation. Internal to the transforms.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/autodiff/snapshot.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The cotangent of each input; empty where no output depends on it. With Targets::end_walk what the inputs
/// were computed from is left alone, so that each gets what reaches it and passes nothing on. Throws as vjp;
/// errors begin with the name of `transform`.
std::vector<LazyTensor> pull_back(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                  std::span<const LazyTensor> cotangents, std::string_view transform,
                                  Targets targets = Targets::are_passed);

/// Throws GradientError unless `output` is one floating number.
void check_scalar(const LazyTensor& output, std::string_view transform);

/// value_and_grad on behalf of `transform`, with the gradients of the floating arguments alone.
std::pair<LazyTensor, std::vector<LazyTensor>> value_and_gradients(const TensorFunction& function,
                                                                   std::span<const LazyTensor> arguments,
                                                                   std::string_view transform);

}  // namespace caldera
