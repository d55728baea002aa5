// The graph of one SAC update. Private to training/rl/sac/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "ops/distributions/normal.h"
#include "training/rl/nets/adam_rule.h"
#include "training/rl/sac/sac_options.h"

namespace caldera::rl::detail {

/// Says how many numbers there are in what.
struct SacShape {
  std::int64_t observations = 0, actions = 0;
  std::size_t layers = 0;  ///< of each network
  Activation activation = Activation::relu;

  std::size_t network() const { return 2 * layers; }
  /// A transition: observation, action in [-1, 1], reward, 1 where it terminated, next observation.
  std::int64_t row() const { return 2 * observations + actions + 2; }
};

/// Holds all that updates change, but the replay buffer. One state of Adam an objective.
struct SacState {
  AdamState actor;
  AdamState critics;      ///< of the first, then of the second
  AdamState temperature;  ///< of its logarithm
  std::vector<LazyTensor> targets;

  std::vector<LazyTensor> all() const;
  static SacState from(std::span<const LazyTensor> all, const SacShape& shape);
  static std::size_t size(const SacShape& shape);
};

/// Returns the policy at these observations: deviations depend on the state, their logarithms are in [-20,
/// 2].
TanhNormal sac_policy(const SacShape& shape, std::span<const LazyTensor> actor,
                      const LazyTensor& observations);

struct SacResult {
  SacState state;
  LazyTensor figures;  ///< (4): critic loss, actor loss, temperature, entropy
};

/// Builds one update of critics, actor, temperature and targets, in this order, from rows of transitions and
/// normal noise (2, batch, actions), for the next actions and the present ones.
SacResult sac_update(const SacShape& shape, const SACOptions& options, const SacState& state,
                     const LazyTensor& rows, const LazyTensor& noise, const LazyTensor& rate);

}  // namespace caldera::rl::detail
