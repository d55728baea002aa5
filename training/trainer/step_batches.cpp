#include "training/trainer/step_batches.h"

#include "training/trainer/seeds.h"

namespace caldera::detail {

std::uint64_t data_seed(const TrainOptions& options) { return mix_seed(options.seed, kDataStream); }

StepBatches::StepBatches(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
                         const TrainOptions& options)
    : models_(models),
      objective_(objective),
      options_(options),
      source_(data.batches(options.batch_size, data_seed(options), options.packing)) {}

const std::vector<Batch>& StepBatches::of_step(std::int64_t step) {
  if (!batches_.empty() && (step - 1) % objective_.steps_per_batch() != 0) return batches_;
  batches_.clear();
  const BatchPosition before = source_->position();
  const std::uint64_t seed =
      mix_seed(mix_seed(options_.seed, kDrawnStream), static_cast<std::uint64_t>(step));
  try {
    for (std::int64_t i = 0; i < options_.grad_accumulation; ++i)
      batches_.push_back(
          objective_.prepare(models_, source_->next(), mix_seed(seed, static_cast<std::uint64_t>(i))));
  } catch (...) {
    batches_.clear();
    source_->restore(before);
    throw;
  }
  return batches_;
}

}  // namespace caldera::detail
