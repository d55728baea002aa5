// The end of a training step: from gradients to the new parameters and what else the run keeps. Private to
// training/.
#pragma once

#include <vector>

#include "training/optim/loss_scaler.h"
#include "training/optim/optimizer.h"
#include "training/optim/weight_average.h"
#include "training/trainer/train_options.h"

namespace caldera::detail {

/// Names what a step changes. The pointers are null where the run has no such thing.
struct StepParts {
  Optimizer& optimizer;
  WeightAverage* average = nullptr;
  bool average_is_new = false;  ///< not updated yet: it shares the parameters' memory
  LossScaler* scaler = nullptr;
};

struct StepUpdate {
  LazyTensor norm;                  ///< of the gradients, before clipping
  std::vector<LazyTensor> outputs;  ///< parameters, state and averages: evaluate them together
};

/// Clips the gradients (those of the scaled loss, where there is a scaler) and replaces parameters, state and
/// averages by their updates, all lazily.
StepUpdate update_parts(const StepParts& parts, std::vector<LazyTensor>& grads, const TrainOptions& options,
                        double learning_rate);

/// Puts back what update_parts() replaces when it goes.
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
};

}  // namespace caldera::detail
