#include "training/trainer/json_log.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "lm/base/json_text.h"
#include "training/trainer/line_file.h"

namespace caldera {
namespace {

constexpr const char* kWhat = "the training log";
constexpr const char* kColumns =
    "step,loss,learning_rate,grad_norm,tokens,tokens_per_second,host_ms,device_ms,peak_bytes,val_loss";

}  // namespace

double nine_digits(double value) { return std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr); }

std::string to_json_line(const StepRecord& record) {
  detail::JsonMembers line{{"step", record.step},
                           {"loss", nine_digits(record.loss)},
                           {"learning_rate", nine_digits(record.learning_rate)},
                           {"grad_norm", nine_digits(record.grad_norm)},
                           {"tokens", record.tokens},
                           {"tokens_per_second", nine_digits(record.tokens_per_second)},
                           {"host_ms", nine_digits(record.host_ms)},
                           {"device_ms", nine_digits(record.device_ms)},
                           {"peak_bytes", record.peak_bytes}};
  if (record.loss_scale != 1) {
    line.emplace_back("loss_scale", record.loss_scale);
    line.emplace_back("skipped", record.skipped);
  }
  for (const Metric& metric : record.metrics) line.emplace_back(metric.name, nine_digits(metric.value));
  return detail::to_json(line);
}

std::string to_json_line(const ValidationRecord& record) {
  detail::JsonMembers line{{"step", record.step}, {"val_loss", nine_digits(record.loss)}};
  for (const Metric& metric : record.metrics)
    line.emplace_back("val_" + metric.name, nine_digits(metric.value));
  return detail::to_json(line);
}

JsonLogObserver::JsonLogObserver(std::filesystem::path path, Warn warn)
    : file_(std::make_unique<detail::LineFile>(std::move(path), kWhat, std::move(warn))) {}
JsonLogObserver::~JsonLogObserver() = default;

void JsonLogObserver::on_begin(std::int64_t) {
  if (resumed_step_ == 0) return file_->begin({});
  file_->begin([&](const std::string& line) { return detail::is_json_until(line, resumed_step_); });
}
void JsonLogObserver::on_step(const StepRecord& record) { file_->write(to_json_line(record)); }
void JsonLogObserver::on_validation(const ValidationRecord& record) { file_->write(to_json_line(record)); }
void JsonLogObserver::on_end() { file_->close(); }

CsvLogObserver::CsvLogObserver(std::filesystem::path path, Warn warn)
    : file_(std::make_unique<detail::LineFile>(std::move(path), kWhat, std::move(warn))) {}
CsvLogObserver::~CsvLogObserver() = default;

void CsvLogObserver::on_begin(std::int64_t) {
  bool has_names = false;
  if (resumed_step_ == 0) {
    file_->begin({});
  } else {
    file_->begin([&](const std::string& line) {
      has_names = has_names || line == kColumns;
      return line == kColumns || detail::is_row_until(line, resumed_step_);
    });
  }
  if (!has_names) file_->write(kColumns);
}
void CsvLogObserver::on_step(const StepRecord& r) {
  file_->write(fmt::format("{},{:.9g},{:.9g},{:.9g},{},{:.9g},{:.9g},{:.9g},{},", r.step, r.loss,
                           r.learning_rate, r.grad_norm, r.tokens, r.tokens_per_second, r.host_ms,
                           r.device_ms, r.peak_bytes));
}
void CsvLogObserver::on_validation(const ValidationRecord& r) {
  file_->write(fmt::format("{},,,,,,,,,{:.9g}", r.step, r.loss));
}
void CsvLogObserver::on_end() { file_->close(); }

}  // namespace caldera
