// Job: a request's texts while they are generated.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "lm/serve/engine/engine.h"
#include "lm/serve/service/sequence.h"

namespace caldera::serve {

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< of the prompt's
  std::int64_t completion_tokens = 0;
  std::int64_t reasoning_tokens = 0;  ///< of the completion's
};

/// Holds what one text of a job is made of.
struct JobText {
  GenerateRequest request;
  SequenceOptions options;
  bool counts_prompt = true;  ///< false for further texts of one prompt
};

/// The texts of one request. The engine's thread puts what is new in, a client's thread takes it out, when it
/// can: the engine never waits for a client.
class Job {
 public:
  /// Hands the texts to the engine. Throws ApiError: 429 where the queue is full, 400 where the request is at
  /// fault. The engine and the tokenizer must outlive the job.
  static std::shared_ptr<Job> start(Engine& engine, const Tokenizer& tokenizer, std::vector<JobText> texts);
  ~Job() { cancel(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Waits until something is new, for so long at most, and takes it: nothing where nothing came.
  std::vector<Delta> take(std::chrono::milliseconds wait);
  /// Whether every text has ended and all has been taken.
  bool done() const;
  /// Ends what is still generated.
  void cancel();

  Usage usage() const;
  std::size_t size() const { return texts_; }

 private:
  /// Shared with the engine's callbacks, which may outlive the job by a step.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Delta> deltas;
    std::size_t running = 0;
    bool cancelled = false;
    Usage usage;
    std::vector<bool> counted;  // texts whose prompt is in the usage
  };

  Job(Engine& engine, std::size_t texts);

  Engine& engine_;
  std::size_t texts_;
  std::shared_ptr<State> state_;
  std::vector<RequestId> ids_;
};

}  // namespace caldera::serve
