// EnvironmentWrapper: an environment around another one.
#pragma once

#include <memory>
#include <utility>

#include "training/rl/envs/environment.h"

namespace caldera::rl {

/// Passes everything on; derive from it and override what differs.
class EnvironmentWrapper : public Environment {
 public:
  explicit EnvironmentWrapper(std::unique_ptr<Environment> inner) : inner_(std::move(inner)) {}

  const Space& observation_space() const override { return inner_->observation_space(); }
  const Space& action_space() const override { return inner_->action_space(); }
  void reset(Random& random, std::span<double> observation) override { inner_->reset(random, observation); }
  StepResult step(std::span<const double> action, std::span<double> observation) override {
    return inner_->step(action, observation);
  }
  std::vector<double> state() const override { return inner_->state(); }
  void set_state(std::span<const double> state, std::span<double> observation) override {
    inner_->set_state(state, observation);
  }

 protected:
  Environment& inner() { return *inner_; }
  const Environment& inner() const { return *inner_; }

 private:
  std::unique_ptr<Environment> inner_;
};

}  // namespace caldera::rl
