// The logs of a training run: JSON Lines, an object a step or validation, and CSV, a row of the same figures.
//
// The file is replaced when the run begins, not when the observer is made: a run refused for its input leaves
// an earlier log alone; one that diverges has replaced it by its own, which shows how. A run that goes on
// keeps the lines up to its step. A log never ends a run: where writing fails (a full disk) it warns once,
// and goes on when it can.
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

/// Rounds to nine digits, which tell any two floats apart: as many as the logs have.
double nine_digits(double value);

/// {"step","loss","learning_rate","grad_norm","tokens","tokens_per_second","host_ms","device_ms","peak_bytes"},
/// then the objective's metrics by their names.
std::string to_json_line(const StepRecord& record);
/// {"step","val_loss"}, then the objective's metrics as "val_NAME".
std::string to_json_line(const ValidationRecord& record);

/// Writes a JSON object a record, as it comes.
class JsonLogObserver : public TrainObserver {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// `warn` takes a line for people; by default it goes to standard error.
  explicit JsonLogObserver(std::filesystem::path path, Warn warn = {});
  ~JsonLogObserver() override;

  void on_resume(std::int64_t step) override { resumed_step_ = step; }
  void on_begin(std::int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_validation(const ValidationRecord& record) override;
  void on_end() override;

 private:
  std::unique_ptr<detail::LineFile> file_;
  std::int64_t resumed_step_ = 0;
};

/// Writes a row a record, as it comes, after a row of names: step, loss, learning_rate, grad_norm, tokens,
/// tokens_per_second, host_ms, device_ms, peak_bytes, val_loss. What a record does not have is empty.
class CsvLogObserver : public TrainObserver {
 public:
  using Warn = JsonLogObserver::Warn;

  explicit CsvLogObserver(std::filesystem::path path, Warn warn = {});
  ~CsvLogObserver() override;

  void on_resume(std::int64_t step) override { resumed_step_ = step; }
  void on_begin(std::int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_validation(const ValidationRecord& record) override;
  void on_end() override;

 private:
  std::unique_ptr<detail::LineFile> file_;
  std::int64_t resumed_step_ = 0;
};

}  // namespace caldera
