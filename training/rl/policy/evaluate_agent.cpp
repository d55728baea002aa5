#include <fmt/format.h>

#include <cmath>

#include "engine/base/error.h"
#include "training/rl/envs/vector_environment.h"
#include "training/rl/policy/policy.h"

namespace caldera::rl {
namespace {

/// The episodes that count of environment i.
std::int64_t share_of(std::int64_t episodes, std::int64_t count, std::int64_t i) {
  return episodes / count + (i < episodes % count ? 1 : 0);
}

void summarize(AgentEvaluation& evaluation) {
  const auto n = static_cast<double>(evaluation.returns.size());
  double squares = 0;
  for (const double r : evaluation.returns) evaluation.mean_return += r / n;
  for (const double r : evaluation.returns)
    squares += (r - evaluation.mean_return) * (r - evaluation.mean_return);
  evaluation.std_return = std::sqrt(squares / n);
}

}  // namespace

AgentEvaluation evaluate_agent(const Policy& policy, VectorEnvironment& environments, std::int64_t episodes) {
  if (policy.observation_space().size() != environments.observation_space().size() ||
      policy.action_space().to_string() != environments.action_space().to_string())
    throw ShapeError(
        fmt::format("evaluate_agent: the policy is for {} and {}, the environments have {} and {}",
                    policy.observation_space().to_string(), policy.action_space().to_string(),
                    environments.observation_space().to_string(), environments.action_space().to_string()));
  return evaluate_actions([&](std::span<const double> seen) { return policy.act(seen); }, environments,
                          episodes);
}

AgentEvaluation evaluate_actions(const std::function<std::vector<double>(std::span<const double>)>& act,
                                 VectorEnvironment& environments, std::int64_t episodes) {
  if (episodes < 1) throw ValueError(fmt::format("evaluate_agent: {} episodes; at least 1", episodes));
  const auto count = static_cast<std::size_t>(environments.count());
  std::vector<double> returns(count), lengths(count);
  std::vector<std::int64_t> done(count);
  AgentEvaluation evaluation;
  environments.reset();
  while (static_cast<std::int64_t>(evaluation.returns.size()) < episodes) {
    environments.step(act(environments.now().observations));
    for (std::size_t i = 0; i < count; ++i) {
      returns[i] += environments.now().rewards[i];
      ++lengths[i];
      if (!environments.now().ended(i)) continue;
      if (done[i]++ < share_of(episodes, environments.count(), static_cast<std::int64_t>(i))) {
        evaluation.returns.push_back(returns[i]);
        evaluation.lengths.push_back(lengths[i]);
      }
      returns[i] = lengths[i] = 0;
    }
  }
  summarize(evaluation);
  return evaluation;
}

}  // namespace caldera::rl
