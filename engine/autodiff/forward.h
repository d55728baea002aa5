// The walk of forward-mode differentiation. Internal to the transforms.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Something on the way has a gradient rule at most: reverse mode may do.
class NoTangentRule : public GradientError {
 public:
  using GradientError::GradientError;
};

/// jvp of a graph. Throws as it; errors begin with the name of `transform`.
std::vector<LazyTensor> push_forward(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                     std::span<const LazyTensor> tangents, std::string_view transform);

/// jvp of a function, on behalf of `transform`.
std::pair<std::vector<LazyTensor>, std::vector<LazyTensor>> value_and_tangents(
    const VectorFunction& function, std::span<const LazyTensor> primals, std::span<const LazyTensor> tangents,
    std::string_view transform);

}  // namespace caldera
