// Wrappers that change what goes in or comes out of an environment.
#pragma once

#include <memory>
#include <vector>

#include "training/rl/envs/wrapper.h"

namespace caldera::rl {

/// Takes actions in [-1, 1] and scales them to the environment's bounds. Throws ValueError for actions that
/// are choices or have no bounds.
class RescaledActions final : public EnvironmentWrapper {
 public:
  explicit RescaledActions(std::unique_ptr<Environment> inner);
  const Space& action_space() const override { return actions_; }
  StepResult step(std::span<const double> action, std::span<double> observation) override;

 private:
  Box actions_;
  std::vector<double> scaled_;
};

/// Clips actions to the environment's bounds.
class ClippedActions final : public EnvironmentWrapper {
 public:
  explicit ClippedActions(std::unique_ptr<Environment> inner);
  StepResult step(std::span<const double> action, std::span<double> observation) override;

 private:
  std::vector<double> clipped_;
};

/// Multiplies rewards, and limits them to [-most, most] after that.
class ScaledRewards final : public EnvironmentWrapper {
 public:
  ScaledRewards(std::unique_ptr<Environment> inner, double factor, double most);
  StepResult step(std::span<const double> action, std::span<double> observation) override;

 private:
  double factor_, most_;
};

}  // namespace caldera::rl
