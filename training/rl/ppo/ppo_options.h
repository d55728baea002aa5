// PPOOptions: the numbers of proximal policy optimisation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/autodiff/jacobian/grad_mode.h"
#include "engine/tensor/device.h"
#include "training/rl/nets/mlp.h"

namespace caldera::rl {

/// Says where environments run. `host`: they step on the processor, and observations and actions travel in
/// batches. `device`: a rollout is one scan on the agent's device, of classic environments as graph
/// operations.
enum class Placement : std::uint8_t { host, device };

/// Defaults are those of Stable-Baselines3 2.3 but for the number of steps of a rollout.
struct PPOOptions {
  double gamma = 0.99;
  double gae_lambda = 0.95;
  double clip_range = 0.2;
  std::optional<double> clip_range_value;  ///< of the value's change; none by default
  double entropy_coefficient = 0;
  double value_coefficient = 0.5;
  double max_grad_norm = 0.5;
  /// Updates stop until the next rollout once a batch's KL estimate is above 1.5 times this.
  std::optional<double> target_kl;
  bool normalize_advantage = true;   ///< in each batch: less the mean, over the sample deviation + 1e-8
  std::int64_t rollout_steps = 128;  ///< of each environment
  std::int64_t batch_size = 64;      ///< divides rollout_steps times the number of environments
  std::int64_t epochs = 10;
  double learning_rate = 3e-4;
  double adam_eps = 1e-5;
  /// Rate and clip range fall linearly over the steps of train(), to this share of their beginning.
  double learning_rate_end = 1, clip_range_end = 1;
  std::vector<std::int64_t> hidden{64, 64};
  Activation activation = Activation::tanh;
  GradMode grad_mode = GradMode::reverse;  ///< how gradients are made: reverse or forward
  std::uint64_t seed = 0;
  std::optional<Device> device;  ///< else default_device()

  /// Throws ValueError that names the number that is out of its domain. `count`: of environments.
  void validate(std::int64_t count) const;
};

}  // namespace caldera::rl
