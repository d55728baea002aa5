// Holds what both kinds of PPO share beside the update. Private to training/rl/ppo/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/rl/nets/actor_critic.h"
#include "training/rl/nets/adam_rule.h"
#include "training/rl/policy/policy.h"
#include "training/rl/ppo/ppo_options.h"

namespace caldera::rl::detail {

/// Says which rows each update takes: a new order of all of them in every epoch.
std::vector<std::int32_t> shuffled_rows(Random& random, std::int64_t rows, std::int64_t epochs);
/// Makes a number that falls linearly to a share of its beginning.
LazyTensor falling_number(double first, double last_share, double progress, Device device);
/// Names the figures of an iteration; nothing before the first one.
std::vector<std::pair<std::string, double>> named_figures(const std::vector<float>& figures);
std::map<std::string, LazyTensor*> named_tensors(const ActorCritic& network, AdamState& state);
/// Copies the actor.
Policy policy_of(const ActorCritic& network, const PPOOptions& options, const AdamState& state,
                 const Space& observations, std::optional<RunningMoments> normalizer);

}  // namespace caldera::rl::detail
