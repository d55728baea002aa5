#include "training/rl/envs/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <mutex>

#include "engine/base/error.h"
#include "training/rl/envs/batch_environment.h"
#include "training/rl/envs/classic.h"
#include "training/rl/envs/time_limit.h"

namespace caldera::rl {
namespace {

struct RegisteredEnvironments {
  std::mutex mutex;
  std::map<std::string, EnvironmentFactory, std::less<>> factories;
};

RegisteredEnvironments& registered() {
  static RegisteredEnvironments all;
  return all;
}

}  // namespace

void register_environment(const std::string& name, EnvironmentFactory make) {
  if (name.empty() || !make)
    throw ValueError("register_environment: give a name and a function that makes it");
  if (detail::find_classic(name) != nullptr)
    throw ValueError(fmt::format(
        "register_environment: '{}' is a classic environment, which is stepped in batches and on devices by "
        "its name; choose another one",
        name));
  const std::lock_guard lock(registered().mutex);
  registered().factories[name] = std::move(make);
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (const detail::ClassicFacts& facts : detail::classic_environments()) names.push_back(facts.name);
  const std::lock_guard lock(registered().mutex);
  for (const auto& [name, make] : registered().factories)
    if (detail::find_classic(name) == nullptr) names.push_back(name);
  return names;
}

std::unique_ptr<Environment> make_unlimited_environment(std::string_view name) {
  EnvironmentFactory make;
  {
    const std::lock_guard lock(registered().mutex);
    const auto found = registered().factories.find(name);
    if (found != registered().factories.end()) make = found->second;
  }
  if (make) {
    std::unique_ptr<Environment> made = make();
    if (!made) throw ValueError(fmt::format("the function of the environment '{}' made none", name));
    return made;
  }
  const detail::ClassicFacts* facts = detail::find_classic(name);
  if (facts == nullptr)
    throw ValueError(
        fmt::format("there is no environment '{}' (valid: {})", name, fmt::join(environment_names(), ", ")));
  return facts->make();
}

std::unique_ptr<Environment> make_environment(std::string_view name) {
  std::unique_ptr<Environment> made = make_unlimited_environment(name);
  const detail::ClassicFacts* facts = detail::find_classic(name);
  if (facts == nullptr) return made;
  return std::make_unique<TimeLimit>(std::move(made), facts->steps);
}

std::unique_ptr<VectorEnvironment> make_vector_environment(std::string_view name, std::int64_t count,
                                                           std::uint64_t seed) {
  if (detail::find_classic(name) != nullptr) return std::make_unique<BatchEnvironment>(name, count, seed);
  return make_vector_environment([name = std::string(name)] { return make_environment(name); }, count, seed);
}

}  // namespace caldera::rl
