// GradientExchange: sums gradients over ranks, as they are or in fewer bytes. Private to training/trainer/.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/distributed/distributed.h"
#include "lm/nn/module.h"
#include "training/trainer/train_options.h"

namespace caldera::detail {

/// With a gradient type of 16 bits, or only the largest elements sent, what a message leaves out is kept and
/// added to what the next step sends (error feedback: Seide et al. 2014; Stich et al. 2018), so that nothing
/// is lost, only late. What is kept is a rank's own and is not saved: a run that goes on begins with none.
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
