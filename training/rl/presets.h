// Options that are known to solve the classic environments.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "training/rl/policy/agent.h"
#include "training/rl/ppo/ppo_options.h"

namespace caldera::rl {

/// Says what to override of a preset.
struct AgentOptions {
  std::uint64_t seed = 0;
  std::optional<Device> device;              ///< else default_device()
  std::optional<std::int64_t> environments;  ///< how many side by side
  std::optional<double> learning_rate;
  Placement placement = Placement::host;  ///< `device`: DevicePPO
};

/// Lists "ppo" and "sac".
std::vector<std::string> algorithm_names();

/// Makes an agent with its environments by name, with numbers of the RL zoo of Stable-Baselines3 2.3
/// (hyperparams/ppo.yml, sac.yml) where it has some, else the algorithm's defaults. Throws ValueError for a
/// name that is not known, and as the agents do.
std::unique_ptr<Agent> make_agent(std::string_view algorithm, std::string_view environment,
                                  const AgentOptions& options = {});

}  // namespace caldera::rl
