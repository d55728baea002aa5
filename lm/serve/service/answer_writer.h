// AnswerWriter: turns what a request's texts become into answers of an API.
#pragma once

#include <string>

#include "lm/serve/protocol/api_error.h"
#include "lm/serve/service/delta.h"
#include "lm/serve/service/job.h"

namespace caldera::serve {

/// One answer, whole or as a stream of events.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;

  /// Gathers a delta for whole(). Throws ApiError for one that says that its text failed.
  virtual void add(const Delta& delta) = 0;
  virtual Json whole(const Usage& usage) const = 0;

  /// Writes the events of a stream that tell a delta, or several.
  virtual std::string events(const Delta& delta) = 0;
  /// Writes its last events.
  virtual std::string end(const Usage& usage) = 0;
  /// Writes what says nothing, so that proxies keep a stream that was silent.
  virtual std::string silence() const { return ": still here\n\n"; }
  /// Names the form of a stream: server-sent events, unless it says otherwise.
  virtual const char* stream_type() const { return "text/event-stream"; }

 protected:
  AnswerWriter() = default;
};

/// Throws ApiError for a delta that says that its text failed, or was cancelled.
void require_goes_on(const Delta& delta);

}  // namespace caldera::serve
