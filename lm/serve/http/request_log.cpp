#include "lm/serve/http/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "lm/serve/protocol/api_error.h"

namespace caldera::serve {
namespace {

// What a client sends must not end the line.
std::string one_line(std::string text) {
  constexpr std::size_t kMost = 160;
  if (text.size() > kMost) text.resize(kMost);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  return text;
}

}  // namespace

RequestLog::RequestLog(Metrics& metrics, Print print, bool json, Begin begin)
    : metrics_(metrics), print_(std::move(print)), json_(json), begin_(std::move(begin)) {}

RequestLog::~RequestLog() {
  metrics_.count_request(begin_.endpoint, status_, seconds());
  metrics_.count_tokens(usage_.prompt_tokens, usage_.completion_tokens);
  if (key_ != nullptr) key_->count_tokens(usage_.prompt_tokens + usage_.completion_tokens);
  if (print_) print_(json_ ? json_line() : one_line(line()));
}

std::string RequestLog::line() const {
  std::string line = fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {} {} {} {} {:.3f}s", fmt::gmtime(std::time(nullptr)),
                                 begin_.client, begin_.method, begin_.endpoint, status_, seconds());
  if (usage_.prompt_tokens > 0)
    line += fmt::format(" prompt={} generated={}", usage_.prompt_tokens, usage_.completion_tokens);
  if (first_token_ >= 0) line += fmt::format(" first={:.3f}s", first_token_);
  if (!end_.empty()) line += " " + end_;
  return line;
}

std::string RequestLog::json_line() const {
  const auto told = [](double seconds) { return std::round(seconds * 1e6) / 1e6; };
  Json line{{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
            {"id", begin_.id},
            {"client", begin_.client},
            {"method", begin_.method},
            {"path", begin_.endpoint},
            {"status", status_},
            {"seconds", told(seconds())}};
  if (key_ != nullptr) line["key"] = key_->name();
  if (!model_.empty()) line["model"] = model_;
  if (usage_.prompt_tokens > 0) {
    line["prompt_tokens"] = usage_.prompt_tokens;
    line["cached_tokens"] = usage_.cached_tokens;
    line["generated_tokens"] = usage_.completion_tokens;
  }
  if (first_token_ >= 0) line["first_token_seconds"] = told(first_token_);
  if (!end_.empty()) line["end"] = one_line(end_);
  return dump(line);
}

void RequestLog::first_token() {
  if (first_token_ >= 0) return;
  first_token_ = seconds();
  metrics_.count_first_token(first_token_);
}

void RequestLog::disconnected() {
  end_ = "disconnected";
  metrics_.count_disconnect();
}

double RequestLog::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace caldera::serve
