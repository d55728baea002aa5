// The log of a training run: JSON Lines, one object a step or validation.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "training/trainer/observer.h"

namespace caldera {

/// {"step","loss","learning_rate","grad_norm","tokens","tokens_per_second","host_ms","device_ms","peak_bytes"},
/// then the objective's metrics by their names.
std::string to_json_line(const StepRecord& record);
/// {"step","val_loss"}, then the objective's metrics as "val_NAME".
std::string to_json_line(const ValidationRecord& record);

/// Writes each record as it comes, so that the file can be followed. The file is replaced when the run
/// begins, not when the observer is made: a run refused for its input leaves an earlier log alone; one that
/// diverges has replaced it by its own, which shows how. A run that goes on keeps the lines up to its step.
///
/// A log never ends a run: where writing fails (a full disk) it warns once, and goes on when it can.
class JsonLogObserver : public TrainObserver {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// `warn` takes a line for people; by default it goes to standard error.
  explicit JsonLogObserver(std::filesystem::path path, Warn warn = {});
  ~JsonLogObserver() override;

  void on_resume(std::int64_t step) override { resumed_step_ = step; }
  void on_begin(std::int64_t total_steps) override;
  void on_step(const StepRecord& record) override { write(to_json_line(record)); }
  void on_validation(const ValidationRecord& record) override { write(to_json_line(record)); }
  void on_end() override;

 private:
  void write(const std::string& line);
  void fail(int error);

  std::filesystem::path path_;
  Warn warn_;
  std::int64_t resumed_step_ = 0;
  struct File;
  std::unique_ptr<File> file_;
  std::int64_t size_ = 0;  // of what was written whole
  bool warned_ = false;
};

}  // namespace caldera
