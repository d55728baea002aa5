// SACOptions: the numbers of soft actor-critic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/autodiff/jacobian/grad_mode.h"
#include "engine/tensor/device.h"
#include "training/rl/nets/mlp.h"

namespace caldera::rl {

/// Defaults are those of Stable-Baselines3 2.3.
struct SACOptions {
  double gamma = 0.99;
  double tau = 0.005;           ///< the share by which targets follow the critics at each update (Polyak)
  double learning_rate = 3e-4;  ///< of actor, critics and temperature
  std::int64_t buffer_size = 1'000'000;  ///< transitions; rounded up to whole iterations
  std::int64_t start_steps =
      100;  ///< before them actions are uniform, in the policy's units, and nothing learns
  std::int64_t batch_size = 256;
  std::int64_t train_every = 1;  ///< steps of each environment between updates
  std::int64_t updates = 1;      ///< then
  /// The temperature, if it is not to be learned.
  std::optional<double> temperature;
  double initial_temperature = 1;
  std::optional<double> target_entropy;  ///< else less the number of action numbers
  std::vector<std::int64_t> hidden{256, 256};
  Activation activation = Activation::relu;
  GradMode grad_mode = GradMode::reverse;  ///< how gradients are made: reverse or forward
  std::uint64_t seed = 0;
  std::optional<Device> device;  ///< else default_device()

  /// Throws ValueError that names the number that is out of its domain.
  void validate() const;
};

}  // namespace caldera::rl
