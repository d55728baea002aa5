// The kinds of functions that transforms take and give. A transform gives back the kind that it was given.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A function of any number of tensors, to one.
using TensorFunction = std::function<LazyTensor(std::span<const LazyTensor>)>;
/// A function of any number of tensors, to any number.
using VectorFunction = std::function<std::vector<LazyTensor>(std::span<const LazyTensor>)>;
/// A function of one tensor, to one.
using UnaryFunction = std::function<LazyTensor(const LazyTensor&)>;

/// A function of one result as one of a list of results. Empty if it is.
inline VectorFunction as_vector_function(TensorFunction function) {
  if (!function) return {};
  return [function = std::move(function)](std::span<const LazyTensor> arguments) {
    return std::vector<LazyTensor>{function(arguments)};
  };
}

/// A function of one tensor as one of a list of tensors. Empty if it is.
inline TensorFunction as_tensor_function(UnaryFunction function) {
  if (!function) return {};
  return [function = std::move(function)](std::span<const LazyTensor> arguments) {
    return function(arguments[0]);
  };
}

}  // namespace caldera
