// Policy: what an agent has learned, without what trained it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/autodiff/function.h"
#include "engine/graph/lazy_tensor.h"
#include "training/rl/envs/running_moments.h"
#include "training/rl/envs/vector_environment.h"
#include "training/rl/nets/mlp.h"
#include "training/rl/spaces/space.h"

namespace caldera::rl {

/// Describes the network of a policy, of which the actor's parameters are enough.
struct PolicyNetwork {
  enum class Head : std::uint8_t {
    choices,   ///< logits of each choice
    normal,    ///< the mean of numbers, which are clipped to the space
    squashed,  ///< the mean before tanh, which is scaled to the space; then as many log deviations
  };
  Head head = Head::choices;
  Activation activation = Activation::tanh;
  std::vector<LazyTensor> parameters;  ///< of the actor
};

/// Chooses the likeliest action for observations. Copies share what they are made of; one thread at a time
/// uses one.
class Policy {
 public:
  /// Throws ShapeError where the network's widths are not those of the spaces.
  Policy(Space observations, Space actions, PolicyNetwork network,
         std::optional<RunningMoments> normalizer = {});

  const Space& observation_space() const { return observations_; }
  const Space& action_space() const { return actions_; }
  /// Takes rows of observations as the environment has them, and returns a row of action numbers each, all
  /// in the space. Throws ShapeError for half a row.
  std::vector<double> act(std::span<const double> observations) const;

  /// Writes a safetensors file: the parameters by PyTorch's names ("actor.0.weight"), the normaliser
  /// ("normalizer.mean", ".variance"), and the spaces as JSON in its metadata. Throws FileError.
  void save(const std::filesystem::path& path) const;
  /// Reads it. Throws FileError for what is no such file, with what is wrong in it.
  static Policy load(const std::filesystem::path& path, Device device);

 private:
  Space observations_, actions_;
  PolicyNetwork network_;
  std::optional<RunningMoments> normalizer_;
  VectorFunction forward_;
};

struct AgentEvaluation {
  std::vector<double> returns;  ///< of each episode
  std::vector<double> lengths;
  double mean_return = 0;
  double std_return = 0;  ///< with n in the denominator
};

/// Runs whole episodes with the policy, as many as asked, in environments side by side that begin by the
/// seed. Of each environment the same number of episodes counts, so that short ones do not count more often:
/// where `episodes` is no multiple of their number, the first ones have one more. Throws ShapeError for
/// environments with other spaces, ValueError unless episodes > 0.
AgentEvaluation evaluate_agent(const Policy& policy, VectorEnvironment& environments, std::int64_t episodes);
/// Runs them with any function from rows of observations to rows of actions.
AgentEvaluation evaluate_actions(const std::function<std::vector<double>(std::span<const double>)>& act,
                                 VectorEnvironment& environments, std::int64_t episodes);

}  // namespace caldera::rl
