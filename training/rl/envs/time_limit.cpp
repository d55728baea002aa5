#include "training/rl/envs/time_limit.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera::rl {

TimeLimit::TimeLimit(std::unique_ptr<Environment> inner, std::int64_t steps)
    : EnvironmentWrapper(std::move(inner)), steps_(steps) {
  if (steps < 1) throw ValueError(fmt::format("TimeLimit: {} steps; at least 1", steps));
}

void TimeLimit::reset(Random& random, std::span<double> observation) {
  taken_ = 0;
  inner().reset(random, observation);
}

StepResult TimeLimit::step(std::span<const double> action, std::span<double> observation) {
  StepResult result = inner().step(action, observation);
  result.truncated = result.truncated || ++taken_ >= steps_;
  return result;
}

std::vector<double> TimeLimit::state() const {
  std::vector<double> state = inner().state();
  if (!state.empty()) state.push_back(static_cast<double>(taken_));
  return state;
}

void TimeLimit::set_state(std::span<const double> state, std::span<double> observation) {
  if (state.empty()) throw ShapeError("TimeLimit: an empty state; pass what state() gave");
  inner().set_state(state.first(state.size() - 1), observation);
  taken_ = static_cast<std::int64_t>(state.back());
}

}  // namespace caldera::rl
