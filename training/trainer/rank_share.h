// RankShare: what a rank does of a training run that several share. Private to training/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "training/trainer/train_options.h"

namespace caldera {
class CausalLM;
}  // namespace caldera

namespace caldera::detail {

/// Gradients are summed over the batches of a step, be they of one rank or of several, in one fixed binary
/// tree over their number in the step (engine/distributed/fixed_tree.h). So runs of 1, 2, 4 ... ranks have
/// the same bits.
class RankShare {
 public:
  /// Throws ValueError where a step has fewer batches than there are ranks.
  explicit RankShare(const TrainOptions& options);

  int rank() const;
  int size() const;
  bool is_alone() const { return size() == 1; }
  /// "rank 1 of host", where hosts are known.
  std::string name_of(int rank) const;
  /// Asks all ranks for the names of their hosts. Waits for all.
  void learn_names();
  /// The batches [first, second) of a step that this rank computes.
  std::pair<std::int64_t, std::int64_t> batches() const { return batches_; }
  /// Returns of how much what counts in the gradients of this rank is the mean: `total`, of all batches of
  /// the step, unless ranks train on their own (SharingOptions::sync_every). `count` says what counts in a
  /// batch.
  std::int64_t counted(std::int64_t total, const std::function<std::int64_t(std::size_t batch)>& count) const;
  /// Returns how many sums are due once gradients of batch `batch` of the step are there.
  int sums_due(std::int64_t batch) const;

  /// Returns what every rank gives, by rank. Waits for all.
  std::vector<std::vector<double>> gather(std::span<const double> own) const;

  /// Throws ValueError, on every rank the same, unless all ranks give the same values under these names.
  void require_same(std::span<const std::pair<std::string, std::string>> facts) const;

 private:
  const TrainOptions& options_;
  std::pair<std::int64_t, std::int64_t> batches_;
  std::vector<std::string> hosts_;  // by rank
};

/// Hashes a model: its configuration, and names, types and elements of its weights; of more than some hundred
/// million of them a part.
std::string fingerprint_of(CausalLM& model);

}  // namespace caldera::detail
