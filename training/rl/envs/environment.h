// Environment: what an agent acts in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "training/rl/spaces/space.h"

namespace caldera::rl {

/// Tells of a step what is no observation. An episode that `terminated` has no future; one that was
/// `truncated` would have gone on.
struct StepResult {
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
};

/// One simulation. Derive from it for your own; docs/guide/reinforcement-learning.md has one in 30 lines. One
/// thread at a time uses an environment.
class Environment {
 public:
  virtual ~Environment() = default;

  virtual const Space& observation_space() const = 0;
  virtual const Space& action_space() const = 0;
  /// Begins an episode by numbers drawn from `random` alone, and writes the first observation.
  virtual void reset(Random& random, std::span<double> observation) = 0;
  /// Acts, and writes the observation after it. A choice is its number: 0, 1, ... Not called after an end
  /// before the next reset().
  virtual StepResult step(std::span<const double> action, std::span<double> observation) = 0;

  /// Returns all that the rest of the episode depends on, so that a saved run goes on in the middle of it. An
  /// environment that returns nothing begins a new episode then.
  virtual std::vector<double> state() const { return {}; }
  /// Goes on from what state() gave, and writes the observation there.
  virtual void set_state(std::span<const double> state, std::span<double> observation);
};

using EnvironmentFactory = std::function<std::unique_ptr<Environment>()>;

}  // namespace caldera::rl
