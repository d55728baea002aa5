// The graph of one PPO iteration: advantages, then all epochs of updates as turns of one scan. Private to
// training/rl/ppo/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "training/rl/nets/actor_critic.h"
#include "training/rl/nets/adam_rule.h"
#include "training/rl/ppo/ppo_options.h"

namespace caldera::rl::detail {

/// Holds a rollout of T steps of N environments: rows are T * N, a step's environments side by side.
struct Rollout {
  LazyTensor observations;                ///< (T N, observation)
  LazyTensor next_observations;           ///< likewise, those that the steps led to
  LazyTensor actions;                     ///< (T N, action), as f32
  LazyTensor rewards, terminated, ended;  ///< (T, N), f32

  static constexpr std::size_t kTensors = 6;
  static Rollout from(std::span<const LazyTensor> tensors);
  std::vector<LazyTensor> all() const;
};

/// Names the figures of an iteration, in the order of its tensor of figures.
enum class Figure : std::uint8_t {
  policy_loss,
  value_loss,
  entropy,
  approximate_kl,
  clip_fraction,
  updates,
  explained_variance,
};
inline constexpr std::size_t kFigures = 7;

struct UpdateResult {
  AdamState state;
  LazyTensor figures;  ///< (kFigures); sums over the updates but for the last two
};

/// Builds the iteration, lazily. `order` (updates, batch), i32, says which rows each update takes.
UpdateResult ppo_update(const ActorCritic& network, const PPOOptions& options, const AdamState& state,
                        const Rollout& rollout, const LazyTensor& order, const LazyTensor& rate,
                        const LazyTensor& clip_range);

}  // namespace caldera::rl::detail
