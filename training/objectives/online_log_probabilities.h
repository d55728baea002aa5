// OnlineLogProbabilities: log-probabilities of targets from a head that is read some classes at a time.
// Private to training/objectives/.
#pragma once

#include <cstdint>
#include <utility>

#include "lm/models/causal_lm.h"

namespace caldera::detail {

/// Goes over the classes of a head in blocks. What it keeps from one block to the next is, for each row, the
/// largest logit, the sum of exp(logit - largest), and that sum's gradient times the same factor; a larger
/// logit scales the latter two down. With l the target's logit and S the sum of all exponentials,
/// log p = l - log S, and its gradient is l' - S' / S.
class OnlineLogProbabilities {
 public:
  /// `targets` (n) i32; `block` classes at a time.
  OnlineLogProbabilities(LinearHead head, LazyTensor targets, std::int64_t block)
      : head_(std::move(head)), targets_(std::move(targets)), block_(block) {}

  /// Returns, of rows (n, hidden), the log-probabilities (n), f32 or wider, and the gradient of each with
  /// respect to its row (n, hidden), which costs nothing where it is not evaluated. A target outside of [0,
  /// classes) gives NaN.
  std::pair<LazyTensor, LazyTensor> of(const LazyTensor& rows) const;

 private:
  LinearHead head_;
  LazyTensor targets_;
  std::int64_t block_;
};

}  // namespace caldera::detail
