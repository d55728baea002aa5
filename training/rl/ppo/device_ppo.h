// DevicePPO: PPO whose environments are on the device, too.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "training/rl/envs/graph_environment.h"
#include "training/rl/nets/actor_critic.h"
#include "training/rl/nets/adam_rule.h"
#include "training/rl/policy/agent.h"
#include "training/rl/ppo/ppo_options.h"

namespace caldera::rl {

/// PPO with a classic environment as graph operations, in f32: an iteration is one replayed plan, of the
/// rollout as a scan and of the updates as another. Nothing of it visits the host but rewards and ends, once
/// an iteration, for the monitor. Random numbers are drawn on the device. Figures are those of PPO.
class DevicePPO final : public Agent {
 public:
  /// Throws ValueError for a name that is no classic environment, and as PPO does.
  DevicePPO(std::string_view environment, std::int64_t count, PPOOptions options = {});

  Policy policy() const override;
  const AdamState& parameters() const { return state_; }

 protected:
  void iterate(std::int64_t total) override;
  std::vector<std::pair<std::string, double>> figures() const override;
  std::map<std::string, LazyTensor*> tensors() override;

 private:
  void tell(const std::vector<float>& rewards, const std::vector<float>& ended);

  PPOOptions options_;
  Device device_;
  const GraphEnvironment& simulation_;
  ActorCritic network_;
  AdamState state_;
  LazyTensor places_;  // (count, state): where the environments are
  LazyTensor taken_;   // (count): steps of their episodes, f32
  VectorFunction iterate_;
  std::vector<float> figures_;
};

}  // namespace caldera::rl
