#include "lm/serve/http/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

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

RequestLog::RequestLog(Metrics& metrics, Print print, std::string client, std::string method,
                       std::string endpoint)
    : metrics_(metrics),
      print_(std::move(print)),
      client_(std::move(client)),
      method_(std::move(method)),
      endpoint_(std::move(endpoint)) {}

RequestLog::~RequestLog() {
  metrics_.count_request(endpoint_, status_, seconds());
  metrics_.count_tokens(usage_.prompt_tokens, usage_.completion_tokens);
  if (!print_) return;
  std::string line = fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {} {} {} {} {:.3f}s", fmt::gmtime(std::time(nullptr)),
                                 client_, method_, endpoint_, status_, seconds());
  if (usage_.prompt_tokens > 0)
    line += fmt::format(" prompt={} generated={}", usage_.prompt_tokens, usage_.completion_tokens);
  if (first_token_ >= 0) line += fmt::format(" first={:.3f}s", first_token_);
  if (!end_.empty()) line += " " + end_;
  print_(one_line(line));
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
