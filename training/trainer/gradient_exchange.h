// GradientExchange: sums gradients over ranks, as they are or in fewer bytes. Private to training/trainer/.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/distributed/distributed.h"
#include "lm/nn/module.h"
#include "training/trainer/train_options.h"

namespace caldera::detail {

/// With a gradient type of 16 bits, or only the largest elements sent, what a message leaves out is kept and
/// added to what the next step sends (error feedback: Seide et al. 2014; Stich et al. 2018), so that nothing
/// is lost, only late. What is kept is a rank's own.
class GradientExchange {
 public:
  /// Throws ValueError where the gradients are scaled (f16) and would not be sent whole.
  GradientExchange(const std::vector<Parameter>& parameters, const TrainOptions& options, bool is_scaled);

  /// Returns the sums over ranks, lazily, in messages of some size, the last tensors first: the backward pass
  /// has those first, and what computes the others goes on meanwhile.
  std::vector<LazyTensor> summed(std::vector<LazyTensor> grads);

  /// Returns what is left for the next step: evaluate it with the sums.
  const std::vector<LazyTensor>& kept() const { return kept_; }
  void restore(std::vector<LazyTensor> kept) { kept_ = std::move(kept); }

  /// Returns what all ranks have kept, for a checkpoint of rank 0: nothing on others. Waits for all.
  std::map<std::string, LazyTensor> state() const;
  /// Goes on from what state() gave; where other ranks did, rank 0 has what all of them kept. Without any
  /// (the run before sent its gradients whole) there is nothing to keep yet. Throws ValueError for other
  /// shapes.
  void restore_state(const std::map<std::string, LazyTensor>& state);
  /// Takes those of state() out of tensors that are saved together.
  static std::map<std::string, LazyTensor> take_state(std::map<std::string, LazyTensor>& tensors);

 private:
  bool is_whole() const;
  /// Sums `own`, of which `kept` is left.
  LazyTensor sum_coded(const LazyTensor& own, LazyTensor& kept) const;

  SharingOptions options_;
  distributed::Group group_;
  std::vector<std::pair<std::size_t, std::size_t>> ranges_;
  std::vector<LazyTensor> kept_;  // of each range; none where gradients are sent whole
};

}  // namespace caldera::detail
