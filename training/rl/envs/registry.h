// Environments by their names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "training/rl/envs/environment.h"
#include "training/rl/envs/vector_environment.h"

namespace caldera::rl {

/// Makes an environment by its name in Gymnasium, with its time limit. Throws ValueError that lists the
/// names.
std::unique_ptr<Environment> make_environment(std::string_view name);
/// Makes it without a time limit.
std::unique_ptr<Environment> make_unlimited_environment(std::string_view name);
/// Lists the names: "CartPole-v1" and the others, and what was registered.
std::vector<std::string> environment_names();
/// Adds an environment under a name, for make_environment(), make_agent() and the like. Replaces one of
/// that name. Throws ValueError for an empty name or function, and for the name of a classic environment.
/// Thread-safe.
void register_environment(const std::string& name, EnvironmentFactory make);

/// Makes environments by name: a classic one as BatchEnvironment, others on the calling thread.
std::unique_ptr<VectorEnvironment> make_vector_environment(std::string_view name, std::int64_t count,
                                                           std::uint64_t seed);

}  // namespace caldera::rl
