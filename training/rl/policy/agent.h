// Agent: what learns, whatever the algorithm.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/rl/envs/monitor.h"
#include "training/rl/envs/vector_environment.h"
#include "training/rl/policy/policy.h"

namespace caldera::rl {

/// Tells of a run after each iteration.
struct Progress {
  std::int64_t steps = 0;  ///< done, of all environments together
  std::int64_t total = 0;  ///< that train() was asked for
  std::int64_t episodes = 0;
  double mean_return = 0;  ///< of the last 100 episodes; NaN before the first
  double mean_length = 0;
  double steps_per_second = 0;                          ///< of this call of train() so far
  std::vector<std::pair<std::string, double>> figures;  ///< of the algorithm: "policy_loss", ...
};
/// Is called after each iteration; training stops where it returns false.
using Callback = std::function<bool(const Progress&)>;

/// Owns its environments. A saved agent that goes on does so to the last bit. One thread at a time.
class Agent {
 public:
  virtual ~Agent() = default;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  /// Goes on until `steps` steps have been done in all, of all environments together and with those before
  /// this call. An iteration is never cut: there are as many more as complete the last one. Throws ValueError
  /// unless steps > 0, and where a loss is not finite; what was saved before stays.
  void train(std::int64_t steps, const Callback& callback = {});

  std::int64_t steps_done() const { return steps_; }
  const Monitor& monitor() const { return monitor_; }
  VectorEnvironment& environments() { return *environments_; }
  const VectorEnvironment& environments() const { return *environments_; }
  /// Returns what it has learned so far, as a copy of its own.
  virtual Policy policy() const = 0;

  /// Writes everything that its future depends on, in one safetensors file, at once or not at all: optimiser
  /// states, environments, random numbers, replay buffer. Throws FileError.
  void save(const std::filesystem::path& path) const;
  /// Goes on from a file that save() of an agent made in the same way wrote. Throws FileError for a file that
  /// is none, of another algorithm, environment or shape; nothing is changed then.
  void load(const std::filesystem::path& path);

 protected:
  /// `kind` names the algorithm in files.
  Agent(std::string kind, std::unique_ptr<VectorEnvironment> environments, std::uint64_t seed);

  /// Acts and learns once. Adds to the steps what it has acted, by count_step().
  virtual void iterate(std::int64_t total) = 0;
  virtual std::vector<std::pair<std::string, double>> figures() const = 0;
  /// Lists all tensors of its state by name: load() assigns to them.
  virtual std::map<std::string, LazyTensor*> tensors() = 0;
  /// Throws ValueError for a state, named as state() does, whose numbers no run can have come to.
  virtual void check_state(const std::map<std::string, LazyTensor>& /*state*/) const {}

  /// Takes what the last step of the environments gave.
  void count_step() { count_step(environments_->raw()); }
  /// Takes a step that was made elsewhere.
  void count_step(const VectorStep& step) { monitor_.add(step), steps_ += environments_->count(); }
  Random& random() { return random_; }
  /// Returns a copy of the environments' normaliser, for policies.
  std::optional<RunningMoments> normalizer() const {
    const RunningMoments* moments = environments_->normalizer();
    return moments != nullptr ? std::optional(*moments) : std::nullopt;
  }

 private:
  std::map<std::string, LazyTensor> state() const;
  void check_losses() const;

  std::string kind_;
  std::unique_ptr<VectorEnvironment> environments_;
  Monitor monitor_;
  Random random_;
  std::int64_t steps_ = 0;
};

}  // namespace caldera::rl
