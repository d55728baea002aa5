#include "training/trainer/json_log.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "lm/base/json_text.h"

namespace caldera {

std::string to_json_line(const StepRecord& record) {
  detail::JsonMembers line{{"step", record.step},
                           {"loss", record.loss},
                           {"learning_rate", record.learning_rate},
                           {"grad_norm", record.grad_norm},
                           {"tokens", record.tokens},
                           {"tokens_per_second", record.tokens_per_second},
                           {"host_ms", record.host_ms},
                           {"device_ms", record.device_ms},
                           {"peak_bytes", record.peak_bytes}};
  if (record.loss_scale != 1) {
    line.emplace_back("loss_scale", record.loss_scale);
    line.emplace_back("skipped", record.skipped);
  }
  for (const Metric& metric : record.metrics) line.emplace_back(metric.name, metric.value);
  return detail::to_json(line);
}

std::string to_json_line(const ValidationRecord& record) {
  detail::JsonMembers line{{"step", record.step}, {"val_loss", record.loss}};
  for (const Metric& metric : record.metrics) line.emplace_back("val_" + metric.name, metric.value);
  return detail::to_json(line);
}

void JsonLogObserver::on_begin(std::int64_t) {
  file_.open(path_, std::ios::trunc);
  if (!file_) throw FileError(fmt::format("{}: cannot write the training log there", path_.string()));
}

void JsonLogObserver::write(const std::string& line) {
  file_ << line << '\n' << std::flush;
  if (!file_)
    throw FileError(fmt::format("{}: writing the training log failed; is the disk full?", path_.string()));
}

}  // namespace caldera
