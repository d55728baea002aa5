// TimeLimit: truncates episodes that last too long.
#pragma once

#include <cstdint>

#include "training/rl/envs/wrapper.h"

namespace caldera::rl {

/// Truncates an episode with its step number `steps`, as Gymnasium's wrapper of that name. Throws ValueError
/// unless steps > 0.
class TimeLimit final : public EnvironmentWrapper {
 public:
  TimeLimit(std::unique_ptr<Environment> inner, std::int64_t steps);

  void reset(Random& random, std::span<double> observation) override;
  StepResult step(std::span<const double> action, std::span<double> observation) override;
  /// The inner state, and how many steps were taken; nothing where the inner one has no state.
  std::vector<double> state() const override;
  void set_state(std::span<const double> state, std::span<double> observation) override;

 private:
  std::int64_t steps_;
  std::int64_t taken_ = 0;
};

}  // namespace caldera::rl
