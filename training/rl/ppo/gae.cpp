#include "training/rl/ppo/gae.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/control/scan.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"

namespace caldera::rl {

LazyTensor generalized_advantages(const RolloutValues& rollout, double gamma, double lambda) {
  const LazyTensor& r = rollout.rewards;
  const LazyTensor delta = r + rollout.next_values * (1.0 - rollout.terminated) * gamma - rollout.values;
  const std::vector<LazyTensor> first{zeros({r.shape(1)}, r.dtype(), r.device())};
  const std::vector<LazyTensor> over{delta, (1.0 - rollout.ended) * (gamma * lambda)};
  const ScanTurn turns = scan(
      [](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
        const LazyTensor advantage = slices[0] + slices[1] * carry[0];
        return ScanTurn{{advantage}, {advantage}};
      },
      first, over, {.reverse = true});
  return turns.stacked[0];
}

std::vector<double> n_step_returns(std::span<const double> rewards, std::span<const double> next_values,
                                   std::span<const unsigned char> terminated,
                                   std::span<const unsigned char> ended, double gamma, int steps) {
  if (next_values.size() != rewards.size() || terminated.size() != rewards.size() ||
      ended.size() != rewards.size())
    throw ShapeError(fmt::format("n_step_returns: {} rewards, {} values, {} and {} ends; give as many",
                                 rewards.size(), next_values.size(), terminated.size(), ended.size()));
  if (steps < 1) throw ValueError(fmt::format("n_step_returns: {} steps; at least 1", steps));
  std::vector<double> returns(rewards.size());
  for (std::size_t t = 0; t < rewards.size(); ++t) {
    double discount = 1;
    std::size_t at = t;
    for (int k = 0;; ++k, ++at) {
      returns[t] += discount * rewards[at];
      discount *= gamma;
      if (k + 1 == steps || ended[at] != 0 || at + 1 == rewards.size()) break;
    }
    if (terminated[at] == 0) returns[t] += discount * next_values[at];
  }
  return returns;
}

}  // namespace caldera::rl
