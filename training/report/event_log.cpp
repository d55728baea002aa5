#include "training/report/event_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "training/report/event_file.h"
#include "training/trainer/line_file.h"

namespace caldera {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventLogObserver::EventLogObserver(std::filesystem::path folder, Warn warn)
    : folder_(std::move(folder)), warn_(std::move(warn)) {}
EventLogObserver::~EventLogObserver() = default;

void EventLogObserver::on_begin(std::int64_t) {
  std::error_code ignored;  // the file cannot be opened then, which is told
  std::filesystem::create_directories(folder_, ignored);
  const auto path = folder_ / fmt::format("events.out.tfevents.{}.{}.caldera",
                                          static_cast<std::int64_t>(now()), ::getpid());
  file_ = std::make_unique<detail::LineFile>(path, "events for TensorBoard", warn_);
  file_->begin({});
  file_->append(detail::first_event(now()));
  if (resumed_step_ > 0) file_->append(detail::restart_event(now(), resumed_step_));
}

void EventLogObserver::on_step(const StepRecord& record) {
  std::vector<std::pair<std::string, double>> scalars{
      {"train/loss", record.loss},
      {"train/learning_rate", record.learning_rate},
      {"train/grad_norm", record.grad_norm},
      {"train/tokens_per_second", record.tokens_per_second},
      {"train/step_ms", record.host_ms + record.device_ms},
      {"train/peak_bytes", static_cast<double>(record.peak_bytes)}};
  for (const Metric& metric : record.metrics) scalars.emplace_back("train/" + metric.name, metric.value);
  file_->append(detail::scalars_event(now(), record.step, scalars));
}

void EventLogObserver::on_validation(const ValidationRecord& record) {
  std::vector<std::pair<std::string, double>> scalars{{"val/loss", record.loss}};
  for (const Metric& metric : record.metrics) scalars.emplace_back("val/" + metric.name, metric.value);
  file_->append(detail::scalars_event(now(), record.step, scalars));
}

void EventLogObserver::on_end() {
  if (file_) file_->close();
}

}  // namespace caldera
