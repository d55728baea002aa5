// Signals to a training run: Ctrl-C ends it in good order, and SIGUSR1 asks for a checkpoint.
#pragma once

namespace caldera::cli {

/// While one of these lives, SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) are
/// remembered, and so is SIGUSR1. The second of those that ask for the end ends the program at once, so that
/// a step which takes too long can be left. One at a time.
class TrainingSignals {
 public:
  TrainingSignals();
  ~TrainingSignals();
  TrainingSignals(const TrainingSignals&) = delete;
  TrainingSignals& operator=(const TrainingSignals&) = delete;

  /// Tells whether the end was asked for; it stays so.
  bool stop_requested() const;
  /// Tells whether a checkpoint was asked for, and forgets it.
  bool take_save_request();
};

}  // namespace caldera::cli
