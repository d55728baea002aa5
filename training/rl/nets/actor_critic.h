// ActorCritic: a policy and a value, as PPO trains them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "training/rl/nets/mlp.h"
#include "training/rl/spaces/space.h"

namespace caldera::rl {

/// Describes two networks of one shape. Choices are categorical, one for each of several; numbers are normal
/// with a deviation that does not depend on the state. Parameters: the actor's, for numbers "log_std", the
/// critic's. Functions take them as tensors; those of actions take rows, (..., numbers), as f32.
class ActorCritic {
 public:
  ActorCritic(std::int64_t observations, Space actions, std::vector<std::int64_t> hidden,
              Activation activation);

  /// Makes orthogonal weights with gains sqrt(2), of the policy's last layer 0.01, of the value's 1.
  std::vector<LazyTensor> make_parameters(std::uint64_t seed, Device device) const;
  std::vector<std::string> names() const;
  std::size_t actor_count() const { return actor_count_; }

  struct Judged {
    LazyTensor log_prob;  ///< (rows)
    LazyTensor entropy;   ///< (rows)
  };
  Judged judge(std::span<const LazyTensor> parameters, const LazyTensor& observations,
               const LazyTensor& actions) const;
  /// Returns a value a row.
  LazyTensor value(std::span<const LazyTensor> parameters, const LazyTensor& observations) const;
  /// Draws actions by noise of noise_size() numbers a row: uniform for choices, normal for numbers.
  LazyTensor act(std::span<const LazyTensor> parameters, const LazyTensor& observations,
                 const LazyTensor& noise) const;
  /// Returns the likeliest actions.
  LazyTensor act_greedily(std::span<const LazyTensor> parameters, const LazyTensor& observations) const;

  std::int64_t noise_size() const { return actions_.flat_size(); }
  const Space& actions() const { return actions_; }

 private:
  std::vector<LazyTensor> choices(const LazyTensor& logits) const;
  LazyTensor logits(std::span<const LazyTensor> parameters, const LazyTensor& observations) const;

  std::int64_t observations_;
  Space actions_;
  std::vector<std::int64_t> hidden_;
  Activation activation_;
  std::size_t actor_count_;
};

}  // namespace caldera::rl
