// Templates over concepts.h for environments and policies of one's own.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "training/loop/concepts.h"
#include "training/rl/envs/vector_environment.h"
#include "training/rl/policy/policy.h"

namespace caldera::rl {

/// An environment with the base, around a type that has what concepts::Environment asks for.
template <concepts::Environment E>
class AsEnvironment final : public Environment {
 public:
  explicit AsEnvironment(E inner) : inner_(std::move(inner)) {}
  const Space& observation_space() const override { return inner_.observation_space(); }
  const Space& action_space() const override { return inner_.action_space(); }
  void reset(Random& random, std::span<double> observation) override { inner_.reset(random, observation); }
  StepResult step(std::span<const double> action, std::span<double> observation) override {
    return inner_.step(action, observation);
  }

 private:
  E inner_;
};

/// Makes `count` environments, copies of this one, on up to `threads` threads.
template <concepts::Environment E>
std::unique_ptr<VectorEnvironment> vector_of(const E& environment, std::int64_t count, std::uint64_t seed,
                                             int threads = 1) {
  return make_vector_environment(
      [environment]() -> std::unique_ptr<Environment> {
        return std::make_unique<AsEnvironment<E>>(environment);
      },
      count, seed, threads);
}

/// Runs episodes as evaluate_agent() does, with a policy of any type.
template <concepts::Policy P>
AgentEvaluation run_episodes(const P& policy, VectorEnvironment& environments, std::int64_t episodes) {
  return evaluate_actions([&](std::span<const double> seen) { return policy.act(seen); }, environments,
                          episodes);
}

}  // namespace caldera::rl
