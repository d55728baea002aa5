// RequestLog: one line a request.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lm/serve/http/key_ring.h"
#include "lm/serve/service/job.h"
#include "lm/serve/service/metrics.h"

namespace caldera::serve {

/// Notes what is known of a request while it is answered; printed and counted once, when this is destroyed.
class RequestLog {
 public:
  using Print = std::function<void(const std::string& line)>;

  /// Says what is known of a request when it begins.
  struct Begin {
    std::string id;
    std::string client;
    std::string method;
    std::string endpoint;
  };

  /// `json`: the line is an object of JSON.
  RequestLog(Metrics& metrics, Print print, bool json, Begin begin);
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void status(int status) { status_ = status; }
  /// A text's first piece is on its way.
  void first_token();
  void usage(const Usage& usage) { usage_ = usage; }
  void model(const std::string& name) { model_ = name; }
  /// The key that asks, which its tokens are counted for.
  void key(std::shared_ptr<KeyRing::Use> key) { key_ = std::move(key); }
  /// Says how it ended, in a word: "stop", "disconnected", "time-out", an error.
  void end(const std::string& how) { end_ = how; }
  void disconnected();

  double seconds() const;

 private:
  Metrics& metrics_;
  Print print_;
  std::string line() const;
  std::string json_line() const;

  bool json_;
  Begin begin_;
  std::string model_;
  std::string end_;
  std::shared_ptr<KeyRing::Use> key_;
  int status_ = 0;
  Usage usage_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double first_token_ = -1;
};

}  // namespace caldera::serve
