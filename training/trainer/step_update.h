// Builds what a training step evaluates: from the losses of its batches to the new parameters and what else
// the run keeps. What trains and what plans its memory both build it here, so that they agree. Private to
// training/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "training/objectives/objective.h"
#include "training/optim/loss_scaler.h"
#include "training/optim/weight_average.h"
#include "training/trainer/gradient_exchange.h"
#include "training/trainer/rank_optimizer.h"
#include "training/trainer/rank_share.h"
#include "training/trainer/train_options.h"

namespace caldera::detail {

/// Names what a step changes. The pointers are null where the run has no such thing.
struct StepParts {
  RankOptimizer& optimizer;
  WeightAverage* average = nullptr;
  bool average_is_new = false;  ///< not updated yet: it shares the parameters' memory
  LossScaler* scaler = nullptr;
  const RankShare* ranks = nullptr;      ///< that share the step; null: there are no others
  GradientExchange* exchange = nullptr;  ///< with them; null: gradients stay with their rank
};

/// Sums of the gradients of batches so far, the newest last: partial sums of the tree by which they are added
/// (RankShare).
using GradientSums = std::vector<std::vector<LazyTensor>>;

/// Says which of a step's batches it is.
struct BatchPlace {
  std::int64_t count = 1;    ///< of what counts in the step, by which losses are divided
  bool is_last = true;       ///< the step ends with it
  int sums_due = 0;          ///< sums to be added once its gradients are there
  double learning_rate = 0;  ///< of the step
};

/// Builds what is evaluated for one batch, lazily: evaluate all of it together, and nothing else. `sums` are
/// the objective's, whose tensors are taken, so that only their names are left. `grads` are the sums of the
/// gradients of the step's batches so far, empty before the first: they become those with this batch, or
/// empty where it is the last. That one adds those of other ranks, clips them (those of the scaled loss,
/// where there is a scaler) and replaces parameters, state and averages by their updates.
///
/// The last tensor holds, one behind the other, the batch's part of the step's mean loss, of the last batch
/// the norm of the gradients before clipping, and the sums of the metrics.
std::vector<LazyTensor> batch_outputs(const StepParts& parts, ObjectiveSums& sums, GradientSums& grads,
                                      const TrainOptions& options, const BatchPlace& place);

/// Puts back what the last batch replaces when it goes.
class StepRestored {
 public:
  explicit StepRestored(const StepParts& parts);
  ~StepRestored();
  StepRestored(const StepRestored&) = delete;
  StepRestored& operator=(const StepRestored&) = delete;

 private:
  StepParts parts_;
  std::vector<LazyTensor> parameters_;
  OptimizerState state_;
  std::map<std::string, LazyTensor> averages_;
  std::vector<LazyTensor> kept_;
};

}  // namespace caldera::detail
