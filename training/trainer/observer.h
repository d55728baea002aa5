// TrainObserver: receives the records of a training run while it goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/memory/step_memory.h"
#include "training/objectives/metric.h"

namespace caldera {

/// One training step, as a line of the log.
struct StepRecord {
  std::int64_t step = 0;         ///< counts from 1
  double loss = 0;               ///< mean over what counts in the step, before the update
  double learning_rate = 0;      ///< used by this step
  double grad_norm = 0;          ///< before clipping
  std::int64_t tokens = 0;       ///< that count towards the loss in this step
  double tokens_per_second = 0;  ///< tokens over the step's wall time
  double loss_scale = 1;         ///< that the step's gradients were computed with; 1 unless training in f16
  bool skipped = false;          ///< the gradients overflowed: nothing was updated, and the scale was lowered
  double host_ms = 0;            ///< making the batch and building the graph
  double device_ms = 0;          ///< evaluation, from its start until its results are on the host
  std::uint64_t peak_bytes = 0;  ///< most device memory in use so far
  std::vector<Metric> metrics;   ///< the objective's, before the update
  std::string slowest = {};      ///< of several ranks the one that computed longest, and its host; else empty
};

/// One pass over the validation data.
struct ValidationRecord {
  std::int64_t step = 0;  ///< training steps done before it
  double loss = 0;
  std::vector<Metric> metrics = {};  ///< the objective's
};

/// Receives the events of a run, in order, on the thread that trains. An exception ends the run and reaches
/// its caller.
class TrainObserver {
 public:
  TrainObserver() = default;
  virtual ~TrainObserver() = default;
  TrainObserver(const TrainObserver&) = delete;
  TrainObserver& operator=(const TrainObserver&) = delete;

  /// Before on_begin, where the run goes on after `step` steps of an earlier one.
  virtual void on_resume(std::int64_t step) { static_cast<void>(step); }
  /// Before anything is computed. `total_steps` steps will follow.
  virtual void on_begin(std::int64_t total_steps) { static_cast<void>(total_steps); }
  /// After on_begin, where the peak of memory is predicted.
  virtual void on_memory(const MemoryChoice& memory) { static_cast<void>(memory); }
  virtual void on_step(const StepRecord& record) { static_cast<void>(record); }
  virtual void on_validation(const ValidationRecord& record) { static_cast<void>(record); }
  /// After the last event; also when the run ends with an error.
  virtual void on_end() {}
};

}  // namespace caldera
