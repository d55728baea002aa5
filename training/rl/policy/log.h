// AgentLog: a run as a table and for TensorBoard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>

#include "training/rl/policy/agent.h"

namespace caldera::rl {

/// Adds a line for each iteration in which an episode ended to "progress.csv" in a folder: steps, episodes,
/// mean_return, mean_length, steps_per_second and the algorithm's figures, by a first line of names; and the
/// same as "rollout/mean_return", "train/policy_loss" to a file that `tensorboard --logdir` reads. A run that
/// goes on adds to the lines up to the step it goes on from. Throws FileError where it cannot write.
class AgentLog {
 public:
  /// `first`: steps done before.
  AgentLog(const std::filesystem::path& folder, std::int64_t first);
  ~AgentLog();
  void add(const Progress& progress);

 private:
  void write(std::ofstream& file, const std::string& text) const;

  std::filesystem::path folder_;
  std::ofstream table_, events_;
  bool named_ = false;
  std::int64_t episodes_ = 0;
};

}  // namespace caldera::rl
