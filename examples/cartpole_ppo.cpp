// An agent learns to balance a pole by PPO: each iteration is a rollout, and one plan for all its updates.
// Arguments: steps (default 30000), seed.
#include <caldera/rl.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace rl = caldera::rl;

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 30000;
  rl::PPOOptions options;
  // The numbers of Stable-Baselines3's zoo for this environment.
  options.rollout_steps = 32;
  options.batch_size = 256;
  options.epochs = 20;
  options.gamma = 0.98;
  options.gae_lambda = 0.8;
  options.learning_rate = 1e-3;
  options.learning_rate_end = 0;
  options.clip_range_end = 0.01;
  options.seed = argc > 2 ? static_cast<std::uint64_t>(std::atoll(argv[2])) : 1;
  options.device = caldera::Device::cpu();

  rl::PPO agent(rl::make_vector_environment("CartPole-v1", 8, options.seed), options);
  double told = 0;
  agent.train(steps, [&](const rl::Progress& at) {
    if (static_cast<double>(at.steps) >= told + static_cast<double>(steps) / 10) {
      told = static_cast<double>(at.steps);
      std::printf("%7.0f steps: mean return %5.1f over the last episodes, %6.0f steps/s\n", told,
                  at.mean_return, at.steps_per_second);
    }
    return true;
  });

  agent.policy().save("cartpole.safetensors");
  const rl::Policy policy = rl::Policy::load("cartpole.safetensors", caldera::Device::cpu());
  const auto fresh = rl::make_vector_environment("CartPole-v1", 20, 1000 + options.seed);
  const rl::AgentEvaluation result = rl::evaluate_agent(policy, *fresh, 100);
  std::printf("100 episodes: %.1f +- %.1f of 500\n", result.mean_return, result.std_return);
  const bool good = result.mean_return > 195;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
