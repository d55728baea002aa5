// SAC: soft actor-critic (Haarnoja et al. 2018, with the automatic temperature).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/function.h"
#include "training/rl/policy/agent.h"
#include "training/rl/sac/sac_options.h"

namespace caldera::rl {

namespace detail {
struct SacShape;
struct SacState;
}  // namespace detail

/// Learns continuous actions within finite bounds. An iteration acts `train_every` steps; one plan, in one
/// submit, then adds their transitions to the replay buffer, on the device and in place, draws batches from
/// it and makes the updates. Figures: "critic_loss", "actor_loss", "temperature", "entropy" of the last
/// update.
class SAC final : public Agent {
 public:
  /// Throws ValueError for options out of their domains, and for actions that are choices or have no bounds.
  explicit SAC(std::unique_ptr<VectorEnvironment> environments, SACOptions options = {});
  ~SAC() override;

  Policy policy() const override;
  /// Counts the updates made.
  std::int64_t updates() const;

 protected:
  void iterate(std::int64_t total) override;
  std::vector<std::pair<std::string, double>> figures() const override;
  std::map<std::string, LazyTensor*> tensors() override;
  void check_state(const std::map<std::string, LazyTensor>& state) const override;

 private:
  /// Acts once in all environments, and writes their transitions behind `rows`.
  void act(std::vector<float>& rows);
  std::vector<double> choose(std::span<const float> observations);
  void learn(std::vector<LazyTensor> arguments);

  SACOptions options_;
  Device device_;
  std::unique_ptr<detail::SacShape> shape_;
  std::unique_ptr<detail::SacState> state_;
  std::int64_t capacity_;
  LazyTensor buffer_;    // (capacity, row)
  LazyTensor inserted_;  // transitions so far, i64
  VectorFunction act_, insert_, update_;
  std::vector<float> figures_;
};

}  // namespace caldera::rl
