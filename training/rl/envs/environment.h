// Environment: what an agent acts in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/rl/spaces/space.h"

namespace caldera::rl {

/// What a step gives besides the observation. An episode that `terminated` has no future; one that was
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

/// Makes an environment by its name in Gymnasium, with its time limit. Throws ValueError that lists the
/// names.
std::unique_ptr<Environment> make_environment(std::string_view name);
/// Makes it without a time limit.
std::unique_ptr<Environment> make_unlimited_environment(std::string_view name);
/// Lists the names: "CartPole-v1" and the others, and what was registered.
std::vector<std::string> environment_names();
/// Adds an environment under a name, for make_environment() and the program. Replaces one of that name.
/// Thread-safe.
void register_environment(const std::string& name, EnvironmentFactory make);

}  // namespace caldera::rl
