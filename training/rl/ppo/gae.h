// Generalised advantage estimation.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera::rl {

/// Holds what happened in a rollout of (steps, environments), as floats of that shape. `next_values` are the
/// values of the observations that the steps led to, also where an episode ended there; `terminated` and
/// `ended` are 1 or 0. An episode that was truncated, and the end of the rollout, are followed by that value;
/// one that terminated by nothing.
struct RolloutValues {
  LazyTensor rewards, values, next_values, terminated, ended;
};

/// Returns the advantages, lazily (Schulman et al. 2016, equation 16): with
/// d_t = r_t + gamma v'_t (1 - terminated_t) - v_t, A_t = d_t + gamma lambda (1 - ended_t) A_(t+1). Returns
/// to fit the value to are advantages plus values.
LazyTensor generalized_advantages(const RolloutValues& rollout, double gamma, double lambda);

/// Returns discounted sums of rewards over up to `steps` steps, and what the value behind them counts:
/// n-step returns of (time) rewards on the host. Element t is r_t + gamma r_(t+1) + ... of at most `steps`
/// rewards, none behind an end, plus gamma^k times `next_values` of the last step counted unless that
/// terminated. Throws ShapeError for lists of different lengths, ValueError unless steps > 0.
std::vector<double> n_step_returns(std::span<const double> rewards, std::span<const double> next_values,
                                   std::span<const unsigned char> terminated,
                                   std::span<const unsigned char> ended, double gamma, int steps);

}  // namespace caldera::rl
