// StepBatches: the batches of each step, prepared by the objective. Private to training/trainer/.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "training/data/training_set.h"
#include "training/objectives/objective.h"
#include "training/trainer/train_options.h"

namespace caldera::detail {

class StepBatches {
 public:
  /// All must outlive this.
  StepBatches(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
              const TrainOptions& options);

  /// The batches of a step: new ones, or those of the step before (Objective::steps_per_batch). Throws
  /// FileError where data cannot be read, and whatever prepare() throws; the position is then that before
  /// the step.
  const std::vector<Batch>& of_step(std::int64_t step);

  BatchPosition position() const { return source_->position(); }
  void restore(const BatchPosition& position) { source_->restore(position); }

 private:
  const ObjectiveModels& models_;
  const Objective& objective_;
  const TrainOptions& options_;
  std::unique_ptr<BatchSource> source_;
  std::vector<Batch> batches_;
};

/// The seed of the order of the data of a run.
std::uint64_t data_seed(const TrainOptions& options);

}  // namespace caldera::detail
