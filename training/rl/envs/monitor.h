// Monitor: the returns and lengths of the last episodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "training/rl/envs/vector_environment.h"

namespace caldera::rl {

/// Adds up the rewards of each environment's episode, and keeps the last 100 episodes, as Gymnasium's
/// RecordEpisodeStatistics does.
class Monitor {
 public:
  static constexpr std::size_t kWindow = 100;

  explicit Monitor(std::int64_t count)
      : returns_(static_cast<std::size_t>(count)), lengths_(static_cast<std::size_t>(count)) {}

  /// Takes what a step gave: its rewards as the environment has them.
  void add(const VectorStep& step);

  std::int64_t episodes() const { return episodes_; }
  /// Returns the means over the last episodes, up to 100; NaN before the first has ended.
  double mean_return() const;
  double mean_length() const;

  /// Returns everything as numbers, and takes it back. Throws ShapeError for another count of environments.
  std::vector<double> state() const;
  void set_state(const std::vector<double>& state);

 private:
  std::vector<double> returns_, lengths_;            // of the episodes that go on
  std::vector<double> last_returns_, last_lengths_;  // the oldest first
  std::int64_t episodes_ = 0;
};

}  // namespace caldera::rl
