// RankShare: what a rank does of a training run that several share. Private to training/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"
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
  /// The batches [first, second) of a step that this rank computes.
  std::pair<std::int64_t, std::int64_t> batches() const { return batches_; }
  /// Returns how many sums are due once gradients of batch `batch` of the step are there.
  int sums_due(std::int64_t batch) const;

  /// Sums over ranks, lazily, in parts of some size, the last tensors first: the backward pass has those
  /// first, and what computes the others goes on meanwhile.
  std::vector<LazyTensor> summed(std::vector<LazyTensor> grads) const;

  /// Returns what every rank gives, by rank. Waits for all.
  std::vector<std::vector<double>> gather(std::span<const double> own) const;

  /// Throws ValueError, on every rank the same, unless all ranks give the same values under these names.
  void require_same(std::span<const std::pair<std::string, std::string>> facts) const;

 private:
  const TrainOptions& options_;
  std::pair<std::int64_t, std::int64_t> batches_;
};

/// Hashes a model: names, types, and of each tensor the first elements.
std::string fingerprint_of(CausalLM& model);

}  // namespace caldera::detail
