// RequestLog: one line a request.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "lm/serve/service/job.h"
#include "lm/serve/service/metrics.h"

namespace caldera::serve {

/// Notes what is known of a request while it is answered; printed and counted once, when this is destroyed.
class RequestLog {
 public:
  using Print = std::function<void(const std::string& line)>;

  RequestLog(Metrics& metrics, Print print, std::string client, std::string method, std::string endpoint);
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void status(int status) { status_ = status; }
  /// A text's first piece is on its way.
  void first_token();
  void usage(const Usage& usage) { usage_ = usage; }
  /// Says how it ended, in a word: "stop", "disconnected", "time-out", an error.
  void end(const std::string& how) { end_ = how; }
  void disconnected();

  double seconds() const;

 private:
  Metrics& metrics_;
  Print print_;
  std::string client_;
  std::string method_;
  std::string endpoint_;
  std::string end_;
  int status_ = 0;
  Usage usage_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double first_token_ = -1;
};

}  // namespace caldera::serve
