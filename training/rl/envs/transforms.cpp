#include "training/rl/envs/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace caldera::rl {

RescaledActions::RescaledActions(std::unique_ptr<Environment> inner)
    : EnvironmentWrapper(std::move(inner)),
      actions_(-1, 1, this->inner().action_space().size()),
      scaled_(static_cast<std::size_t>(actions_.size())) {
  const Space& space = this->inner().action_space();
  for (std::size_t i = 0; i < scaled_.size(); ++i)
    if (!space.is_continuous() || !std::isfinite(space.high()[i] - space.low()[i]))
      throw ValueError(fmt::format("RescaledActions: {} has no bounds to scale to", space.to_string()));
}

StepResult RescaledActions::step(std::span<const double> action, std::span<double> observation) {
  const Space& space = inner().action_space();
  for (std::size_t i = 0; i < scaled_.size(); ++i)
    scaled_[i] = space.low()[i] + (action[i] + 1) * 0.5 * (space.high()[i] - space.low()[i]);
  return inner().step(scaled_, observation);
}

ClippedActions::ClippedActions(std::unique_ptr<Environment> inner)
    : EnvironmentWrapper(std::move(inner)),
      clipped_(static_cast<std::size_t>(this->inner().action_space().size())) {}

StepResult ClippedActions::step(std::span<const double> action, std::span<double> observation) {
  const Space& space = inner().action_space();
  for (std::size_t i = 0; i < clipped_.size(); ++i)
    clipped_[i] = std::clamp(action[i], space.low()[i], space.high()[i]);
  return inner().step(clipped_, observation);
}

ScaledRewards::ScaledRewards(std::unique_ptr<Environment> inner, double factor, double most)
    : EnvironmentWrapper(std::move(inner)), factor_(factor), most_(most) {
  if (!(most > 0)) throw ValueError(fmt::format("ScaledRewards: the limit {} is not positive", most));
}

StepResult ScaledRewards::step(std::span<const double> action, std::span<double> observation) {
  StepResult result = inner().step(action, observation);
  result.reward = std::clamp(result.reward * factor_, -most_, most_);
  return result;
}

}  // namespace caldera::rl
