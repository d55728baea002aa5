#include "training/rl/envs/multi_agent.h"

#include "engine/base/error.h"

namespace caldera::rl {

void MultiAgentEnvironment::set_state(std::span<const double> /*state*/, std::span<double> /*observations*/) {
  throw ValueError("this world has no state to go on from: override set_state() where state() returns one");
}

}  // namespace caldera::rl
