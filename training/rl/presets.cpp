#include "training/rl/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "training/rl/envs/normalized_environment.h"
#include "training/rl/envs/registry.h"
#include "training/rl/ppo/device_ppo.h"
#include "training/rl/ppo/ppo.h"
#include "training/rl/sac/sac.h"

namespace caldera::rl {
namespace {

struct PPOPreset {
  std::int64_t environments = 8;
  bool normalizes = false;
  PPOOptions options;
};

PPOPreset ppo_preset(std::string_view environment) {
  PPOPreset preset;
  PPOOptions& o = preset.options;
  if (environment == "CartPole-v1") {
    o.rollout_steps = 32, o.batch_size = 256, o.epochs = 20;
    o.gamma = 0.98, o.gae_lambda = 0.8;
    o.learning_rate = 1e-3, o.learning_rate_end = 0, o.clip_range_end = 0.01;
  } else if (environment == "Pendulum-v1") {
    preset.environments = 4;
    o.rollout_steps = 1024, o.gamma = 0.9, o.learning_rate = 1e-3;
  } else if (environment == "Acrobot-v1") {
    preset.environments = 16;
    preset.normalizes = true;
    o.rollout_steps = 256, o.gae_lambda = 0.94, o.epochs = 4;
  } else if (environment == "MountainCar-v0") {
    preset.environments = 16;
    preset.normalizes = true;
    o.rollout_steps = 16, o.gae_lambda = 0.98, o.epochs = 4;
  }
  return preset;
}

SACOptions sac_preset(std::string_view environment) {
  SACOptions o;
  if (environment == "Pendulum-v1") o.learning_rate = 1e-3, o.hidden = {64, 64};
  if (environment == "MountainCarContinuous-v0") {
    o.buffer_size = 50'000, o.batch_size = 512, o.temperature = 0.1, o.train_every = 32, o.updates = 32;
    o.gamma = 0.9999, o.tau = 0.01, o.start_steps = 0, o.hidden = {64, 64};
  }
  return o;
}

}  // namespace

std::vector<std::string> algorithm_names() { return {"ppo", "sac"}; }

std::unique_ptr<Agent> make_agent(std::string_view algorithm, std::string_view environment,
                                  const AgentOptions& options) {
  const auto environments = [&](std::int64_t count) {
    return make_vector_environment(environment, options.environments.value_or(count), options.seed);
  };
  if (algorithm == "ppo") {
    PPOPreset preset = ppo_preset(environment);
    preset.options.seed = options.seed;
    preset.options.device = options.device;
    if (options.learning_rate) preset.options.learning_rate = *options.learning_rate;
    if (options.placement == Placement::device)
      return std::make_unique<DevicePPO>(environment, options.environments.value_or(preset.environments),
                                         preset.options);
    std::unique_ptr<VectorEnvironment> all = environments(preset.environments);
    if (preset.normalizes)
      all = std::make_unique<NormalizedEnvironment>(std::move(all),
                                                    NormalizeOptions{.gamma = preset.options.gamma});
    return std::make_unique<PPO>(std::move(all), preset.options);
  }
  if (algorithm == "sac") {
    if (options.placement == Placement::device)
      throw ValueError("sac steps its environments on the host; ppo takes the placement 'device'");
    SACOptions preset = sac_preset(environment);
    preset.seed = options.seed;
    preset.device = options.device;
    if (options.learning_rate) preset.learning_rate = *options.learning_rate;
    return std::make_unique<SAC>(environments(1), preset);
  }
  throw ValueError(
      fmt::format("there is no algorithm '{}' (valid: {})", algorithm, fmt::join(algorithm_names(), ", ")));
}

}  // namespace caldera::rl
