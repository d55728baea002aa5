// MultiAgentEnvironment: a world in which several agents act at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "training/rl/envs/environment.h"

namespace caldera::rl {

/// One world. All its agents have the same spaces, and act at the same time, as those of PettingZoo's
/// parallel environments do. One thread at a time uses a world.
class MultiAgentEnvironment {
 public:
  virtual ~MultiAgentEnvironment() = default;

  virtual std::int64_t agents() const = 0;
  virtual const Space& observation_space() const = 0;  ///< of one agent
  virtual const Space& action_space() const = 0;       ///< of one agent
  /// Begins an episode by numbers drawn from `random` alone, and writes a row of observations an agent.
  virtual void reset(Random& random, std::span<double> observations) = 0;
  /// Acts for all, a row an agent, and writes what each observes and gets. The episode of all ends with the
  /// first agent for which it ends. Not called after an end before the next reset().
  virtual void step(std::span<const double> actions, std::span<double> observations,
                    std::span<StepResult> results) = 0;

  /// Returns and takes back what the rest of the episode depends on, as those of Environment.
  virtual std::vector<double> state() const { return {}; }
  virtual void set_state(std::span<const double> state, std::span<double> observations);
};

using MultiAgentFactory = std::function<std::unique_ptr<MultiAgentEnvironment>()>;

}  // namespace caldera::rl
