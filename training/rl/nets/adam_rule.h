// Adam as a function of tensors alone, so that steps can be turns of a loop on the device.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera::rl {

/// Holds parameters and Adam's state for them. One objective, one state: agents keep one each for actor,
/// critic and temperature.
struct AdamState {
  std::vector<LazyTensor> parameters;
  std::vector<LazyTensor> first, second;  ///< moments of the gradients
  LazyTensor step;                        ///< steps done, f32, of rank 0

  /// Takes parameters with moments of zero, on their device.
  static AdamState begin(std::vector<LazyTensor> parameters);
  /// Lists parameters, first and second moments, and the step, one behind the other.
  std::vector<LazyTensor> all() const;
  /// Takes apart what all() lists, of the first `count` parameters.
  static AdamState from(std::span<const LazyTensor> all, std::size_t count);
  static std::size_t size(std::size_t count) { return 3 * count + 1; }
};

struct AdamNumbers {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

/// Returns the state after one step by the gradients, in the order of operations of PyTorch:
/// p - rate / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps). The rate is a tensor or number.
AdamState adam_step(const AdamState& state, std::span<const LazyTensor> grads, const LazyTensor& rate,
                    const AdamNumbers& numbers = {});

}  // namespace caldera::rl
