// Shows the progress of a training run: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "training/trainer/observer.h"

namespace caldera {

/// Writes to a C stream that must outlive it. On a terminal one line is redrawn in place, at most ten times a
/// second, with the loss as a mean of about ten steps; elsewhere about twenty plain lines a run are written,
/// so that logs stay short, each with means since the one before. Both say tokens a second, the time of a
/// step, the most memory so far and the time that is left.
class ProgressObserver : public TrainObserver {
 public:
  explicit ProgressObserver(std::FILE* stream = stderr);
  /// `terminal` says what the stream is instead of asking the system.
  ProgressObserver(std::FILE* stream, bool terminal);

  void on_resume(std::int64_t step) override { first_step_ = step + 1; }
  void on_begin(std::int64_t total_steps) override;
  void on_memory(const MemoryChoice& memory) override;
  void on_step(const StepRecord& record) override;
  void on_validation(const ValidationRecord& record) override;
  void on_end() override;

 private:
  using Clock = std::chrono::steady_clock;

  void draw_bar(const StepRecord& record, Clock::time_point now);
  void write_line(const StepRecord& record, Clock::time_point now);
  std::string remaining(std::int64_t step, Clock::time_point now) const;
  void erase_bar();
  void begin_line(Clock::time_point now);

  std::FILE* stream_;
  bool terminal_;
  bool bar_visible_ = false;
  std::int64_t total_ = 0;
  std::int64_t first_step_ = 1;
  std::int64_t every_ = 1;
  std::int64_t tokens_ = 0;      // since the line before
  std::int64_t steps_ = 0;       // likewise
  double loss_sum_ = 0;          // likewise
  double smooth_loss_ = 0;       // of the last ten steps or so
  Clock::time_point line_time_;  // of the line before
  Clock::time_point start_;      // end of the first step: what is compiled once would spoil the forecast
  Clock::time_point drawn_;
};

}  // namespace caldera
