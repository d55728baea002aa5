// MultiAgentEnvironment: a world in which several agents act at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "training/rl/envs/vector_environment.h"

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

/// Makes `worlds` worlds whose agents share one policy: each agent is a row of the environments, those of one
/// world one after the other, so that PPO, SAC and evaluate_agent() take them like any others. Where a world
/// ends, agents whose own episode did not are truncated. Worlds step on up to `threads` threads; each has its
/// own stream of random numbers. Throws ValueError without a factory, for fewer than one world, and for a
/// world without agents or with other spaces than the first.
std::unique_ptr<VectorEnvironment> make_multi_agent_environment(const MultiAgentFactory& make,
                                                                std::int64_t worlds, std::uint64_t seed,
                                                                int threads = 1);

}  // namespace caldera::rl
