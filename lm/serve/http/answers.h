// Answers: the requests for texts, from the body to the last byte of the answer.
#pragma once

#include <httplib.h>

#include <atomic>
#include <memory>
#include <optional>

#include "lm/serve/http/request_log.h"
#include "lm/serve/service/replies.h"
#include "lm/serve/service/service.h"

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
  tokenize,
  detokenize,
  apply_template
};

/// Answers requests for texts, whole or as a stream. May be used from any thread.
class Answers {
 public:
  Answers(Service& service, Metrics& metrics) : service_(service), metrics_(metrics) {}

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

  void embeddings(const EmbeddingRequest& parsed, httplib::Response& response,
                  const std::shared_ptr<RequestLog>& log);
  std::optional<Json> about_tokens(Endpoint endpoint, const Json& document) const;
  struct Begun;
  Begun begin(Endpoint endpoint, const Json& document);
  template <class Request>
  void start(const Request& request, Begun& begun);
  void stream(httplib::Response& response, const std::shared_ptr<RequestLog>& log, Begun begun);
  void whole(httplib::Response& response, const std::shared_ptr<RequestLog>& log, Begun& begun);

  Service& service_;
  Metrics& metrics_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> cancelled_{false};
};

}  // namespace caldera::serve
