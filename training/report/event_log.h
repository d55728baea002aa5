// EventLogObserver: writes a run for TensorBoard.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "training/trainer/observer.h"

namespace caldera {

namespace detail {
class LineFile;
}

/// Adds a file "events.out.tfevents.SECONDS.PROCESS.caldera" to a folder, which it creates: "train/loss",
/// "train/learning_rate", "train/grad_norm", "train/tokens_per_second", "train/step_ms", "train/peak_bytes"
/// and the objective's metrics a step, "val/loss" and the metrics a validation. A run that goes on has a file
/// of its own, which ends the earlier one's at its step. A log never ends a run: where writing fails it warns
/// once.
class EventLogObserver : public TrainObserver {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// `warn` takes a line for people; by default it goes to standard error.
  explicit EventLogObserver(std::filesystem::path folder, Warn warn = {});
  ~EventLogObserver() override;

  void on_resume(std::int64_t step) override { resumed_step_ = step; }
  void on_begin(std::int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_validation(const ValidationRecord& record) override;
  void on_end() override;

 private:
  std::filesystem::path folder_;
  Warn warn_;
  std::unique_ptr<detail::LineFile> file_;
  std::int64_t resumed_step_ = 0;
};

}  // namespace caldera
