// ReportObserver: keeps a run's page up to date.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "training/report/run_report.h"
#include "training/trainer/observer.h"

namespace caldera {

/// Writes the page every ten seconds, after each validation, and at the end; a run that goes on adds to its
/// earlier page. A page never ends a run: where writing fails it warns once.
class ReportObserver : public TrainObserver {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// `report` has what is known before the run: title, lengths, settings, environment. `warn` takes a line
  /// for people; by default it goes to standard error.
  ReportObserver(std::filesystem::path path, RunReport report, Warn warn = {});

  void on_resume(std::int64_t step) override;
  void on_begin(std::int64_t total_steps) override;
  void on_step(const StepRecord& record) override;
  void on_validation(const ValidationRecord& record) override;
  void on_end() override;

  /// Adds what the model wrote after a step.
  void add_sample(std::int64_t step, const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  void write(bool running);

  std::filesystem::path path_;
  RunReport report_;
  ReportSeries series_;
  Warn warn_;
  double seconds_before_ = 0;
  Clock::time_point start_;
  Clock::time_point written_;
  bool warned_ = false;
};

}  // namespace caldera
