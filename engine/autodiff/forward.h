// Walks a graph from inputs to outputs and computes tangents: forward mode. Internal to the transforms.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Thrown where an operation between inputs and outputs has no tangent rule. Reverse mode may still work.
class NoTangentRule : public GradientError {
 public:
  using GradientError::GradientError;
};

/// Computes jvp(outputs, inputs, tangents). Throws as it does; errors begin with the name of `transform`.
std::vector<LazyTensor> push_forward(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                     std::span<const LazyTensor> tangents, std::string_view transform);

/// Computes jvp(function, primals, tangents). Throws as it does; errors begin with the name of `transform`.
std::pair<std::vector<LazyTensor>, std::vector<LazyTensor>> value_and_tangents(
    const VectorFunction& function, std::span<const LazyTensor> primals, std::span<const LazyTensor> tangents,
    std::string_view transform);

}  // namespace caldera
