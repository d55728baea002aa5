#include "training/trainer/json_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lm/base/file_descriptor.h"
#include "lm/base/json_text.h"

namespace caldera {
namespace {

/// The whole lines of a log up to a step. A line that a crash tore is none.
std::string lines_until(const std::filesystem::path& path, std::int64_t step) {
  std::ifstream file(path);
  std::string kept;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) continue;
    if (record["step"].get<std::int64_t>() <= step) kept += line + '\n';
  }
  return kept;
}

}  // namespace

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

struct JsonLogObserver::File : detail::FileDescriptor {
  using FileDescriptor::FileDescriptor;
};

JsonLogObserver::JsonLogObserver(std::filesystem::path path, Warn warn)
    : path_(std::move(path)), warn_(std::move(warn)) {
  if (!warn_) warn_ = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
}

JsonLogObserver::~JsonLogObserver() = default;

void JsonLogObserver::on_end() { file_.reset(); }

void JsonLogObserver::on_begin(std::int64_t) {
  const std::string kept = resumed_step_ > 0 ? lines_until(path_, resumed_step_) : std::string();
  file_ = std::make_unique<File>(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!*file_) {
    file_.reset();
    return fail(errno);
  }
  size_ = 0;
  if (!kept.empty()) write(kept.substr(0, kept.size() - 1));
}

void JsonLogObserver::write(const std::string& line) {
  if (!file_) return;
  const std::string text = line + '\n';
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(file_->get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      fail(wrote < 0 ? errno : ENOSPC);
      // No half line stays. A pipe has no length to cut; what it took, it took.
      if (::ftruncate(file_->get(), size_) == 0) ::lseek(file_->get(), size_, SEEK_SET);
      return;
    }
    done += static_cast<std::size_t>(wrote);
  }
  size_ += static_cast<std::int64_t>(text.size());
}

void JsonLogObserver::fail(int error) {
  if (warned_) return;
  warned_ = true;
  warn_(fmt::format("warning: {}: cannot write the training log there ({}); the training goes on without it",
                    path_.string(), std::generic_category().message(error)));
}

}  // namespace caldera
