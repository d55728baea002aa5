// TrainControl: what a run asks between its steps: where to go on from, whether to stop, what to save.
#pragma once

#include "training/checkpoints/train_state.h"

namespace caldera {

/// Called on the thread that trains. An exception ends the run and reaches its caller.
class TrainControl {
 public:
  TrainControl() = default;
  virtual ~TrainControl() = default;
  TrainControl(const TrainControl&) = delete;
  TrainControl& operator=(const TrainControl&) = delete;

  /// Returns the state to go on from; null: the run begins. Asked once, before anything is computed.
  virtual const TrainState* resumed() { return nullptr; }
  /// Tells whether the run is to end after the present step. Its state is saved then.
  virtual bool stop_requested() { return false; }
  /// Tells whether the state after the present step is to be saved, though none is due.
  virtual bool save_requested() { return false; }
  /// Saves the state: every TrainOptions::save_every steps, on request, and at the end (`last`). Its tensors
  /// are the run's own, and change with the next step.
  virtual void save(const TrainState& state, bool last) = 0;
};

}  // namespace caldera
