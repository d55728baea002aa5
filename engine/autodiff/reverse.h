// The walk of reverse-mode differentiation. Internal to the transforms.
#pragma once

#include <span>
#include <vector>

#include "engine/autodiff/snapshot.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The cotangent of each input; empty where no output depends on it. With Targets::end_walk what the inputs
/// were computed from is left alone, so that each gets what reaches it and passes nothing on. Throws as vjp.
std::vector<LazyTensor> pull_back(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                  std::span<const LazyTensor> cotangents,
                                  Targets targets = Targets::are_passed);

}  // namespace caldera
