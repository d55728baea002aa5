// GraphEnvironment: classic environments as graph operations, for rollouts on a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/graph/lazy_tensor.h"
#include "training/rl/spaces/space.h"

namespace caldera::rl {

/// Holds what a step gives, lazily.
struct GraphStep {
  LazyTensor state;   ///< (count, state)
  LazyTensor reward;  ///< (count)
  LazyTensor ended;   ///< (count), bool: terminated
};

/// A classic environment whose state is a tensor (count, state) of any floating type: pure functions, which
/// build nodes.
struct GraphEnvironment {
  std::string name;
  Space observations, actions;
  std::int64_t state = 0;  ///< numbers in a state
  std::int64_t draws = 0;  ///< uniform numbers that an episode begins with
  std::int64_t steps = 0;  ///< the time limit, which is the caller's to count

  /// Makes first states of uniform numbers (count, draws) in [0, 1).
  LazyTensor (*begin)(const LazyTensor& uniform) = nullptr;
  /// Moves all by actions (count), which for choices are whole numbers of the state's type.
  GraphStep (*step)(const LazyTensor& state, const LazyTensor& action) = nullptr;
  /// Returns (count, observation).
  LazyTensor (*observe)(const LazyTensor& state) = nullptr;
};

/// Finds it by its name in Gymnasium. Throws ValueError for a name that is no classic environment.
const GraphEnvironment& find_graph_environment(std::string_view name);

}  // namespace caldera::rl
