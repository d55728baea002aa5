// The log of a training run: JSON Lines, one object a step or validation.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "training/trainer/observer.h"

namespace caldera {

/// {"step","loss","learning_rate","grad_norm","tokens","tokens_per_second","host_ms","device_ms","peak_bytes"},
/// then the objective's metrics by their names.
std::string to_json_line(const StepRecord& record);
/// {"step","val_loss"}, then the objective's metrics as "val_NAME".
std::string to_json_line(const ValidationRecord& record);

/// Writes each record as it comes and flushes it, so that the file can be followed. The file is replaced when
/// the run begins, not when the observer is made: a run refused for its input leaves an earlier log alone;
/// one that diverges has replaced it by its own, which shows how.
class JsonLogObserver : public TrainObserver {
 public:
  explicit JsonLogObserver(std::filesystem::path path) : path_(std::move(path)) {}

  /// Throws FileError when the file cannot be opened.
  void on_begin(std::int64_t total_steps) override;
  /// These throw FileError when writing fails.
  void on_step(const StepRecord& record) override { write(to_json_line(record)); }
  void on_validation(const ValidationRecord& record) override { write(to_json_line(record)); }
  void on_end() override { file_.close(); }

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace caldera
