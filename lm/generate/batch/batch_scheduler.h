// Does the work of a BatchGenerator. Private to lm/generate/.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lm/generate/batch/batch_request.h"
#include "lm/generate/batch/request_book.h"
#include "lm/generate/batch/ticket_mutex.h"
#include "lm/generate/cache/paged_forward.h"
#include "lm/generate/text_frequencies.h"

namespace caldera {

class BatchScheduler {
 public:
  BatchScheduler(CausalLM& model, const BatchLimits& limits);

  RequestId submit(GenerateRequest request);
  bool cancel(RequestId id) { return book_.cancel(id); }
  bool step();
  bool wait(double seconds) { return book_.wait(seconds); }
  BatchStatus status() const { return book_.status(); }
  std::optional<std::string> failure() const { return book_.closed(); }
  const BatchLimits& limits() const { return limits_; }
  void load_adapter(const std::string& name, const std::filesystem::path& dir);
  void unload_adapter(const std::string& name);
  std::vector<std::string> adapters() const;
  void forget_prefixes();

 private:
  using Requests = std::span<RunningRequest* const>;
  /// Holds what a call said, on the host: ids that the device chose, or logits. Of each request there is one
  /// row, or one behind each token that was fed where drafts were.
  struct Answers {
    std::vector<std::int32_t> ids;
    std::vector<float> logits;
    std::size_t rows = 1;  // a request
    std::size_t width = 0;
  };

  void check(const GenerateRequest& request) const;
  NamedAdapter adapter_named(const std::string& name) const;

  // Functions of the cache and the device (batch_engine.cpp).
  void open();
  bool reopen();
  void fail_all(const std::string& why);
  void refuse_all(const std::string& why);
  void update_status();

  // Functions of texts in files (saved_texts.cpp).
  bool saves(const RunningRequest& request) const;
  void restore(RunningRequest& request);
  void save(const RunningRequest& request, std::int64_t end);
  void save_before_windows(const RunningRequest& request, std::int64_t count);

  // Functions of a step (batch_step.cpp).
  void end_cancelled();
  void admit();
  std::int64_t pages_due(const RunningRequest& request) const;
  void prefill();
  void decode();
  void propose(RunningRequest& request);
  bool make_room(RunningRequest& request, std::int64_t count);
  void score(RunningRequest& request, std::int64_t count);
  void feed(Requests requests, std::int64_t count);
  void feed_apart(Requests requests, std::int64_t count, const std::string& why);
  Answers compute(Requests requests, std::int64_t count);
  void draw_ahead(Requests requests, const Answers& answers);
  void settle(Requests requests, std::int64_t count, const Answers& answers);
  void note_fed(RunningRequest& request, std::int64_t count);
  void choose(RunningRequest& request, const Answers& answers, std::size_t first);
  void found(RunningRequest& request);

  // Functions of a request's life.
  void deliver(RunningRequest& request, TokenEvent event);
  void end(RunningRequest& request, FinishReason reason, const std::string& error = {});
  void finish(RunningRequest& request);
  std::list<RequestPtr>::iterator place_of(const RunningRequest& request);
  std::vector<RunningRequest*> all_running() const;
  bool runs(const RunningRequest& request) { return place_of(request) != running_.end(); }

  const BatchLimits limits_;
  CausalLM& model_;
  const EvaluationMode mode_;
  const TextFrequencies frequencies_;
  RequestBook book_;

  detail::TicketMutex stepping_;  // of what follows; taken before adapters_mutex_ and the book's
  std::unique_ptr<AdapterBank> bank_;
  std::unique_ptr<PagedForward> forward_;  // null while there is no memory for it, or the device has failed
  bool failed_ = false;                    // the device
  bool changed_ = false;                   // the model's weights: what is in files is not theirs
  std::uint64_t loads_ = 0;
  std::list<RequestPtr> running_;  // in the order in which they came
  std::list<RequestPtr> ended_;    // in this step

  mutable std::mutex adapters_mutex_;
  std::map<std::string, NamedAdapter> adapters_;
};

}  // namespace caldera
