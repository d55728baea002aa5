// Answers: the requests for texts, from the body to the last byte of the answer.
#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "lm/serve/http/request_log.h"
#include "lm/serve/service/replies.h"
#include "lm/serve/service/service_source.h"

namespace caldera::serve {

enum class Endpoint : std::uint8_t {
  chat,
  completions,
  messages,
  responses,
  ollama_chat,
  ollama_generate,
  count_tokens,
  embeddings,
  rerank,
  tokenize,
  detokenize,
  apply_template
};

/// Answers requests for texts, whole or as a stream. May be used from any thread.
class Answers {
 public:
  /// `limits`: those that hold whatever service answers.
  Answers(ServiceSource& services, Metrics& metrics, const ServeLimits& limits)
      : services_(services), metrics_(metrics), limits_(limits) {}

  /// Answers a request of Connection::current() whose body has been read. Throws ApiError where it is
  /// refused. A stream goes on after the return: then `log` lives until it ends.
  void answer(Endpoint endpoint, const std::string& body, httplib::Response& response,
              const std::shared_ptr<RequestLog>& log);

  /// From now on every request is refused.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }
  /// Ends those under way.
  void cancel_all() { cancelled_ = true; }

 private:
  class Ticket;
  class Stream;

  /// Answers what a service makes of vectors.
  using OfVectors = std::function<Json(Usage& usage, const std::function<bool()>& go_on)>;
  void vectors(const OfVectors& answer, httplib::Response& response, const std::shared_ptr<RequestLog>& log);
  static std::optional<Json> about_tokens(const Service& service, Endpoint endpoint, const Json& document);
  struct Begun;
  void begin(Endpoint endpoint, const Json& document, Begun& begun);
  template <class Request>
  void start(const Request& request, Begun& begun);
  void stream(httplib::Response& response, const std::shared_ptr<RequestLog>& log, Begun begun);
  void whole(httplib::Response& response, const std::shared_ptr<RequestLog>& log, Begun& begun);

  ServiceSource& services_;
  Metrics& metrics_;
  const ServeLimits& limits_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> cancelled_{false};
};

}  // namespace caldera::serve
