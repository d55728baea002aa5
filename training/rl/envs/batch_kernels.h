// The loops of BatchEnvironment. Private to training/rl/envs/.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace caldera::rl::detail {

/// Steps environments whose numbers are arrays of `stride` doubles, a multiple of 16.
struct BatchKernel {
  std::string_view name;
  std::size_t draws = 0;  ///< random numbers that an episode begins with
  /// Writes the state of environment `i` that the numbers in [0, 1) give.
  void (*begin)(const double* draws, double* states, std::size_t stride, std::size_t i) = nullptr;
  /// Moves all, writes the rewards and 1 where an episode has terminated, else 0.
  void (*step)(double* states, const double* actions, double* rewards, double* ended,
               std::size_t stride) = nullptr;
  /// Writes the observations of the first `count`, a row each.
  void (*observe)(const double* states, double* seen, double* rows, std::size_t stride,
                  std::size_t count) = nullptr;
  /// Writes the observation of environment `i`.
  void (*observe_one)(const double* states, double* row, std::size_t stride, std::size_t i) = nullptr;
};

/// Finds the kernel for this processor. Throws ValueError for a name that has none.
const BatchKernel& find_batch_kernel(std::string_view name);

}  // namespace caldera::rl::detail
