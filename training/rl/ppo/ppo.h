// PPO: proximal policy optimisation (Schulman et al. 2017).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "training/rl/nets/actor_critic.h"
#include "training/rl/nets/adam_rule.h"
#include "training/rl/policy/agent.h"
#include "training/rl/ppo/ppo_options.h"

namespace caldera::rl {

/// Learns any space of actions. An iteration is a rollout and one plan that replays in one submit: values,
/// advantages and all epochs of updates. Figures: "policy_loss", "value_loss", "entropy", "approximate_kl",
/// "clip_fraction", means over the updates that were made; "updates" and "explained_variance".
class PPO final : public Agent {
 public:
  /// Throws ValueError for options out of their domains.
  explicit PPO(std::unique_ptr<VectorEnvironment> environments, PPOOptions options = {});

  Policy policy() const override;
  const AdamState& parameters() const { return state_; }

 protected:
  void iterate(std::int64_t total) override;
  std::vector<std::pair<std::string, double>> figures() const override;
  std::map<std::string, LazyTensor*> tensors() override;

 private:
  struct Rows;  // a rollout on the host
  void act(Rows& rows);
  void update(const Rows& rows, double progress);

  PPOOptions options_;
  Device device_;
  ActorCritic network_;
  AdamState state_;
  VectorFunction act_, update_;
  std::vector<float> figures_;
};

}  // namespace caldera::rl
