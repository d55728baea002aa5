// TrainOptions: what a training run is told besides its model, objective and data.
#pragma once

#include <cstdint>
#include <memory>

#include "training/data/batch_iterator.h"
#include "training/memory/step_memory.h"
#include "training/optim/loss_scaler.h"
#include "training/optim/optimizer_options.h"
#include "training/optim/schedule.h"
#include "training/trainer/sharing_options.h"

namespace caldera {

namespace distributed {
class Communicator;
}  // namespace distributed

/// Sequence length and prompt masking are the dataset's (DatasetOptions).
struct TrainOptions {
  std::int64_t iterations = 1000;      ///< optimiser steps
  std::int64_t batch_size = 4;         ///< sequences evaluated together
  std::int64_t grad_accumulation = 1;  ///< batches a step
  Packing packing = Packing::none;     ///< whether rows hold several sequences; validation has one a row
  ScheduleKind schedule = ScheduleKind::constant;
  ScheduleShape schedule_shape{};
  std::int64_t warmup = 0;       ///< steps; see Schedule
  OptimizerOptions optimizer{};  ///< which one; its learning rate is the schedule's peak
  double max_grad_norm = 1;      ///< 0 does not clip
  double max_grad_value = 0;     ///< clips each element of a gradient, before the norm is; 0 does not
  double ema_decay =
      0;  ///< of the parameters' moving average, which is validated and saved in their place; 0: none
  std::int64_t val_every = 0;     ///< validate after so many steps; 0: only before and after the training
  std::int64_t val_batches = -1;  ///< batches a validation; -1: all
  std::int64_t save_every = 0;    ///< save after so many steps; 0: only at the end. Needs a TrainControl
  std::int64_t patience = 0;      ///< stop after so many validations without a best one; 0: never
  bool save_best = false;         ///< save after each validation that is the best so far
  bool try_longest = false;  ///< compute the longest batch's gradients first: memory is short now or never
  Checkpointing checkpointing = Checkpointing::none;  ///< automatic: within the device's limit
  std::uint64_t planned_limit =
      0;                   ///< bytes that automatic plans for in place of the device's limit; 0: that
  bool forecast = false;   ///< predict the peak of memory before the first step, whatever is checkpointed
  std::uint64_t seed = 0;  ///< of the data's order and of dropout
  /// The processes that share the batches of a step; null: this one has them all. Every rank trains with the
  /// same model, data and options; grad_accumulation is at least their number.
  std::shared_ptr<distributed::Communicator> ranks = nullptr;
  SharingOptions sharing{};          ///< how they do; means nothing to one
  LossScalerOptions loss_scaling{};  ///< used where the model computes in f16

  /// Throws ValueError naming the option that is outside of its domain.
  void validate() const;
};

}  // namespace caldera
