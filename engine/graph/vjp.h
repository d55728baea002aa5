// VjpContext: the contract between differentiation and the gradient rules in ops/.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Holds what a gradient rule sees and fills. Rules live beside their operation in ops/.
struct VjpContext {
  std::span<const LazyTensor> inputs;
  const LazyTensor& output;
  const LazyTensor& cotangent;  // shape and dtype of the output
  std::span<const bool> needed;
  std::vector<LazyTensor> grads;  // to fill where needed; shape and dtype of the input
};

}  // namespace caldera
