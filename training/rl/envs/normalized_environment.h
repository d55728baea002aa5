// NormalizedEnvironment: observations and rewards of one scale.
#pragma once

#include <memory>

#include "training/rl/envs/running_moments.h"
#include "training/rl/envs/vector_environment.h"

namespace caldera::rl {

struct NormalizeOptions {
  bool observations = true;
  bool rewards = true;
  double gamma = 0.99;  ///< of the discounted return, whose deviation rewards are divided by
};

/// Replaces observations by (x - mean) / deviation of all seen so far, and rewards by r / deviation of the
/// discounted return, neither beyond 10, as VecNormalize of Stable-Baselines3. raw() has what the
/// environments gave; an agent's policy() takes the observations' moments along. Its state has all of it.
class NormalizedEnvironment final : public VectorEnvironment {
 public:
  NormalizedEnvironment(std::unique_ptr<VectorEnvironment> inner, NormalizeOptions options = {});

  void reset() override;
  void step(std::span<const double> actions) override;
  VectorState state() const override;
  void set_state(const VectorState& state) override;
  const VectorStep& raw() const override { return inner_->raw(); }
  const RunningMoments* normalizer() const override { return options_.observations ? &observed_ : nullptr; }

  /// Stops or goes on learning the moments: for evaluation they stand still.
  void freeze(bool frozen = true) { frozen_ = frozen; }

 private:
  void take(bool learns);

  std::unique_ptr<VectorEnvironment> inner_;
  NormalizeOptions options_;
  RunningMoments observed_, returned_;
  std::vector<double> returns_;
  bool frozen_ = false;
};

}  // namespace caldera::rl
