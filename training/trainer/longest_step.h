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
  /// Evaluates the gradients as a step does that waits for further batches, and forgets them. Throws
  /// OutOfMemoryError that says what to do.
  void try_gradients() const;

 private:
  /// Says where in a run the batch stands.
  struct Place {
    bool is_last = true;        ///< of its step
    int sums = 0;               ///< partial sums of gradients of earlier batches of its step
    int due = 0;                ///< of those, that are added to the batch's
    bool has_averages = false;  ///< they have memory of their own, which those of parts_ have not yet
  };
  /// Builds what is evaluated there. Nothing of the run is changed.
  StepEvaluation evaluation(const Place& place) const;
  /// Lists all that are evaluated and differ.
  std::vector<StepGraph> evaluations() const;
  MemoryBounds bounds() const;
  /// Adds what a validation takes that is longer than the step's batch, of which it is no part.
  void count_validation(MemoryBounds& bounds) const;
  /// Says whether averages will be there that are the parameters now.
  bool will_have_averages() const;

  const ObjectiveModels& models_;
  const Objective& objective_;
  std::span<const Batch> validation_;
  const TrainOptions& options_;
  StepParts parts_;
  Batch batch_;
};

}  // namespace caldera::detail
