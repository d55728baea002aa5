// VectorEnvironment: several environments that step together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "training/rl/envs/environment.h"
#include "training/rl/envs/multi_agent.h"
#include "training/rl/envs/running_moments.h"

namespace caldera::rl {

/// Holds what the last step gave, a row an environment. An environment whose episode has ended has begun the
/// next one: `observations` has its first observation, `last_observations` the one that the episode ended
/// with (rows of the others are not changed).
struct VectorStep {
  std::vector<double> observations;
  std::vector<double> last_observations;
  std::vector<double> rewards;
  std::vector<std::uint8_t> terminated;
  std::vector<std::uint8_t> truncated;

  bool ended(std::size_t i) const { return (terminated[i] | truncated[i]) != 0; }
};

/// Everything that its future depends on.
struct VectorState {
  std::vector<double> numbers;
  std::vector<std::uint64_t> randoms;
};

/// Steps a number of environments of one kind; each has its own stream of random numbers, made of the seed
/// and its number. One thread at a time calls it.
class VectorEnvironment {
 public:
  virtual ~VectorEnvironment() = default;
  VectorEnvironment(const VectorEnvironment&) = delete;
  VectorEnvironment& operator=(const VectorEnvironment&) = delete;

  std::int64_t count() const { return count_; }
  const Space& observation_space() const { return observation_space_; }
  const Space& action_space() const { return action_space_; }

  /// Begins an episode in each. The streams of random numbers go on.
  virtual void reset() = 0;
  /// Acts in all; `actions` has a row for each. Throws ShapeError for another number of them.
  virtual void step(std::span<const double> actions) = 0;
  /// Returns what the last step or reset gave.
  const VectorStep& now() const { return now_; }
  /// Returns the same as the environments gave it, before a normaliser: what is reported.
  virtual const VectorStep& raw() const { return now_; }
  /// Returns the moments by which observations are normalised; null where they are not.
  virtual const RunningMoments* normalizer() const { return nullptr; }

  virtual VectorState state() const = 0;
  /// Goes on from what state() gave. Throws ShapeError for the state of another kind or number.
  virtual void set_state(const VectorState& state) = 0;

 protected:
  VectorEnvironment(std::int64_t count, Space observations, Space actions);
  void check_actions(std::span<const double> actions) const;

  VectorStep now_;

 private:
  std::int64_t count_;
  Space observation_space_, action_space_;
};

/// Makes `count` environments with a virtual call each, on up to `threads` threads: what any Environment
/// takes. An error that one throws is thrown by the call, and ValueError where it gives a reward or an
/// observation that is not finite.
std::unique_ptr<VectorEnvironment> make_vector_environment(const EnvironmentFactory& make, std::int64_t count,
                                                           std::uint64_t seed, int threads = 1);

/// Makes `worlds` worlds whose agents share one policy: each agent is a row of the environments, those of one
/// world one after the other, so that PPO, SAC and evaluate_agent() take them like any others. Where a world
/// ends, agents whose own episode did not are truncated. Worlds step on up to `threads` threads; each has its
/// own stream of random numbers. Throws ValueError without a factory, for fewer than one world, and for a
/// world without agents or with other spaces than the first.
std::unique_ptr<VectorEnvironment> make_multi_agent_environment(const MultiAgentFactory& make,
                                                                std::int64_t worlds, std::uint64_t seed,
                                                                int threads = 1);

}  // namespace caldera::rl
