// The trainer: updates the trainable parameters of a model on a dataset, and tells observers how it goes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lm/models/causal_lm.h"
#include "training/data/dataset.h"
#include "training/data/training_set.h"
#include "training/memory/step_memory.h"
#include "training/objectives/objective.h"
#include "training/trainer/control.h"
#include "training/trainer/observer.h"
#include "training/trainer/train_options.h"

namespace caldera {

/// Why a run ended.
enum class TrainEnd : std::uint8_t {
  finished,     ///< all steps are done
  stopped,      ///< its control asked for it
  no_progress,  ///< the validation loss did not improve for long enough (TrainOptions::patience)
};

struct TrainResult {
  std::optional<double> initial_val_loss;  ///< nothing without validation data
  std::optional<double> final_val_loss;
  std::vector<Metric> final_val_metrics;  ///< the objective's, of that validation
  std::optional<BestValidation> best;     ///< of the validations after the first step
  StepRecord last_step;  ///< its step is the number of steps done, those before a resume included
  TrainEnd end = TrainEnd::finished;
  std::optional<MemoryChoice> memory = {};  ///< where it was predicted
  std::uint64_t peak_bytes = 0;             ///< most memory in use on the device, in the life of the process
};

/// Steps that pass `epochs` times over the data: rounded up to whole steps.
std::int64_t steps_for_epochs(std::int64_t epochs, const TrainingSet& data, const TrainOptions& options);

/// Trains `models.policy()` by minimising `objective` on `data`. `valid` may be null. Observers are called in
/// order.
///
/// A step draws batches, builds one graph of loss, gradients, clipping and the optimiser's update, evaluates
/// loss and new state together, and drops the graph. Shapes repeat (rows are padded to a multiple of 16), and
/// learning rate and step enter as arguments, so plans do too. With gradient accumulation each batch but the
/// last is evaluated to summed gradients; batches are weighted by what counts in them, so that the loss is
/// the mean over all of the step, as if they had been one batch. A model that computes in f16 is trained with
/// a loss scale (loss_scaler.h): a step whose gradients overflow changes nothing but the scale. On the CPU
/// the same seed gives bit-identical losses.
///
/// `control`, which may be null, says from which state to go on, is given the states to save, and may stop
/// the run between two steps. On the CPU a run that is stopped and gone on with is bit for bit the one that
/// was not, whatever the step. Of a state it throws ValueError where it is of other data, another optimiser
/// or other parameters.
///
/// Throws ValueError for bad options, data that do not fit the model or the objective, and an objective that
/// has no reference model; and Error when a loss or gradient
/// norm is not finite; the parameters are then of no use.
TrainResult train(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
                  const TokenDataset* valid, const TrainOptions& options,
                  std::span<TrainObserver* const> observers = {}, TrainControl* control = nullptr);

/// Says what memory the training would take, and which layers it would checkpoint to stay within the device's
/// limit, by planning a step on the longest batch, and a validation on the longest of `valid` (which may be
/// null); computes nothing of it. Nothing for an objective whose rows the model writes itself. Throws as
/// train() does, and OutOfMemoryError where the limit cannot be met.
std::optional<MemoryChoice> plan_memory(const ObjectiveModels& models, const Objective& objective,
                                        const TrainingSet& data, const TokenDataset* valid,
                                        const TrainOptions& options);

/// Compares limits of memory for that; see compare_limits(). Empty for an objective whose rows the model
/// writes itself. The device's own limit does not count. Throws as train() does.
std::vector<MemoryRow> plan_memory(const ObjectiveModels& models, const Objective& objective,
                                   const TrainingSet& data, const TokenDataset* valid,
                                   const TrainOptions& options, std::span<const double> shares,
                                   std::uint64_t own_limit);

/// Trains with the next-token objective.
TrainResult train(CausalLM& model, const TrainingSet& data, const TokenDataset* valid,
                  const TrainOptions& options, std::span<TrainObserver* const> observers = {},
                  TrainControl* control = nullptr);

}  // namespace caldera
