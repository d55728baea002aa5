#include "training/report/report_observer.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera {
namespace {

constexpr std::chrono::seconds kBetween{10};

std::optional<RunReport> earlier_report(const std::filesystem::path& path) {
  try {
    return report_of_page(read_text_file(path));
  } catch (const FileError&) {
    return std::nullopt;
  }
}

}  // namespace

ReportObserver::ReportObserver(std::filesystem::path path, RunReport report, Warn warn)
    : path_(std::move(path)), report_(std::move(report)), warn_(std::move(warn)) {
  if (!warn_) warn_ = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
}

void ReportObserver::on_resume(std::int64_t step) {
  const std::optional<RunReport> before = earlier_report(path_);
  if (!before) return;
  for (const ReportPoint& point : before->points)
    if (point.step <= step) series_.add(point);
  for (const ValidationRecord& record : before->validations)
    if (record.step <= step) report_.validations.push_back(record);
  for (const auto& sample : before->samples)
    if (sample.first <= step) report_.samples.push_back(sample);
  seconds_before_ = before->seconds;
  report_.tokens = before->tokens;
}

void ReportObserver::on_begin(std::int64_t total_steps) {
  report_.total_steps = total_steps;
  start_ = written_ = Clock::now();
}

void ReportObserver::on_step(const StepRecord& record) {
  report_.tokens += record.tokens;
  series_.add({.step = record.step,
               .loss = record.loss,
               .learning_rate = record.learning_rate,
               .grad_norm = record.grad_norm,
               .tokens_per_second = record.tokens_per_second,
               .step_ms = record.host_ms + record.device_ms,
               .peak_bytes = static_cast<double>(record.peak_bytes)});
  if (Clock::now() - written_ >= kBetween) write(/*running=*/true);
}

void ReportObserver::on_validation(const ValidationRecord& record) {
  report_.validations.push_back(record);
  write(/*running=*/true);
}

void ReportObserver::add_sample(std::int64_t step, const std::string& text) {
  report_.samples.emplace_back(step, text);
}

void ReportObserver::on_end() { write(/*running=*/false); }

void ReportObserver::write(bool running) {
  report_.running = running;
  report_.points = series_.points();
  report_.seconds = seconds_before_ + std::chrono::duration<double>(Clock::now() - start_).count();
  try {
    write_text_file(path_, to_html(report_));
  } catch (const FileError& error) {
    if (!warned_) warn_(fmt::format("warning: no report: {}; the training goes on without it", error.what()));
    warned_ = true;
  }
  written_ = Clock::now();
}

}  // namespace caldera
