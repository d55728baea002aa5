// RunControl: joins a run to its folder and to the signals that the program gets.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/training/training_signals.h"
#include "training/checkpoints/run_folder.h"
#include "training/trainer/control.h"

namespace caldera::cli {

/// Saves into a run's folder. A checkpoint that cannot be written is a warning, and the run goes on; what was
/// trained in the end goes to a temporary folder where the run's own cannot be written.
class RunControl final : public TrainControl {
 public:
  using Note = std::function<void(const std::string& line)>;

  /// `folder` must outlive this, and be open; null: another process saves. `best_only`: what loads is what
  /// had the lowest validation loss, not the last.
  RunControl(RunFolder* folder, RunFolder::WriteModel write_model, std::optional<TrainState> from,
             bool best_only, Note note);

  const TrainState* resumed() override { return from_ ? &*from_ : nullptr; }
  bool stop_requested() override {
    from_.reset();  // its tensors are the run's now
    return signals_.stop_requested();
  }
  bool save_requested() override { return asked_ = signals_.take_save_request(); }
  /// Throws FileError, naming the temporary folder, where the last state cannot be saved as it should.
  void save(const TrainState& state, bool last) override;

 private:
  [[noreturn]] void save_elsewhere(const TrainState& state, const std::string& problem) const;

  TrainingSignals signals_;
  RunFolder* folder_;
  RunFolder::WriteModel write_model_;
  std::optional<TrainState> from_;
  bool best_only_;
  bool asked_ = false;
  Note note_;
};

}  // namespace caldera::cli
