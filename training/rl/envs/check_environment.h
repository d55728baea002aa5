// check_environment: whether an environment keeps its contract.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/rl/envs/environment.h"

namespace caldera::rl {

/// Runs random actions for `steps` steps and returns what is wrong, a line each; nothing where all is right.
/// It checks that observations are in their space, that rewards are finite, that equal random numbers give
/// equal episodes, and that state() and set_state(), where there is a state, go on as if nothing had been.
std::vector<std::string> check_environment(Environment& environment, std::uint64_t seed = 0,
                                           std::int64_t steps = 300);

}  // namespace caldera::rl
