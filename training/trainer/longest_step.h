// LongestStep: a training step on the longest batch of a dataset. What does not fit the memory is known
// before the first step. Private to training/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "training/data/training_set.h"
#include "training/memory/step_memory.h"
#include "training/objectives/objective.h"
#include "training/trainer/step_update.h"
#include "training/trainer/train_options.h"

namespace caldera::detail {

/// Plans for the longest of the batches of `validation` as well. The model must be in training mode.
/// Everything that is given must outlive it.
class LongestStep {
 public:
  LongestStep(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
              std::span<const Batch> validation, const TrainOptions& options, const StepParts& parts);

  /// Chooses which layers are checkpointed, by the options and the device's limit, and tells the model; see
  /// choose_checkpointing(), and what it throws.
  MemoryChoice choose() const;
  /// See compare_limits().
  std::vector<MemoryRow> compare(std::span<const double> shares, std::uint64_t own_limit) const;
  /// Evaluates the gradients, and forgets them. Throws OutOfMemoryError that says what to do.
  void try_gradients() const;

 private:
  /// The gradients, of the scaled loss where there is a scaler, and the loss.
  std::vector<LazyTensor> gradients() const;
  /// Builds what a step of one batch evaluates. Nothing of the run is changed.
  std::vector<LazyTensor> whole_step() const;
  MemoryBounds bounds() const;
  /// Predicts the peak of a validation that is longer than the step's batch, of which it is no part; else 0.
  std::uint64_t peak_of_validation() const;
  /// Says what is evaluated: the gradients alone where they wait for others or are tried, and the whole step.
  std::vector<StepGraph> evaluations() const;

  const ObjectiveModels& models_;
  const Objective& objective_;
  std::span<const Batch> validation_;
  const TrainOptions& options_;
  StepParts parts_;
  Batch batch_;
};

}  // namespace caldera::detail
