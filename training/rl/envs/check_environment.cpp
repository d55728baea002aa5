#include "training/rl/envs/check_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

namespace caldera::rl {
namespace {

/// What an episode gave, step by step.
struct Trace {
  std::vector<std::vector<double>> observations;
  std::vector<double> rewards;
  bool operator==(const Trace&) const = default;
};

class EnvironmentCheck {
 public:
  explicit EnvironmentCheck(Environment& environment)
      : environment_(environment),
        observation_(static_cast<std::size_t>(environment.observation_space().size())) {}

  Trace run(std::uint64_t seed, std::int64_t steps) {
    Trace trace;
    Random random(seed), actions(~seed);
    environment_.reset(random, observation_);
    see("reset()");
    trace.observations.push_back(observation_);
    for (std::int64_t i = 0; i < steps; ++i) {
      const StepResult result = environment_.step(environment_.action_space().sample(actions), observation_);
      see(fmt::format("step {}", i));
      if (!std::isfinite(result.reward)) say(fmt::format("step {}: the reward is {}", i, result.reward));
      trace.observations.push_back(observation_);
      trace.rewards.push_back(std::isfinite(result.reward) ? result.reward : 0);
      if (result.terminated || result.truncated) {
        environment_.reset(random, observation_);
        see("reset() after an end");
      }
    }
    return trace;
  }

  /// Whether the same actions from the same state lead to the same observations.
  void go_on(std::uint64_t seed) {
    Random random(seed);
    environment_.reset(random, observation_);
    const std::vector<double> state = environment_.state();
    if (state.empty()) return;
    const std::vector<double> action = environment_.action_space().sample(random);
    environment_.step(action, observation_);
    const std::vector<double> first = observation_;
    environment_.set_state(state, observation_);
    environment_.step(action, observation_);
    if (observation_ != first)
      say("set_state(): a step from a state that was set differs from the first one");
  }

  void say(const std::string& problem) {
    if (problems_.size() < 10) problems_.push_back(problem);
  }
  /// Gives away what was said so far.
  std::vector<std::string> problems() { return std::exchange(problems_, {}); }

 private:
  void see(const std::string& when) {
    if (!environment_.observation_space().contains(observation_))
      say(fmt::format("{}: the observation ({}) is not in {}", when, fmt::join(observation_, ", "),
                      environment_.observation_space().to_string()));
  }

  Environment& environment_;
  std::vector<double> observation_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_environment(Environment& environment, std::uint64_t seed, std::int64_t steps) {
  EnvironmentCheck check(environment);
  const Trace first = check.run(seed, steps);
  std::vector<std::string> problems = check.problems();
  const bool equal = check.run(seed, steps) == first;
  static_cast<void>(check.problems());  // those of the first run again
  if (!equal) check.say("reset(): equal random numbers give different episodes");
  check.go_on(seed);
  for (std::string& problem : check.problems()) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace caldera::rl
