#include "training/generate/batch_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "engine/runtime/runtime.h"
#include "ops/core/creation.h"
#include "training/generate/complete_limits.h"
#include "training/generate/current_exception.h"
#include "training/generate/paging/paged_forward.h"
#include "training/generate/running_request.h"

namespace caldera {
namespace {

using RequestPtr = std::unique_ptr<RunningRequest>;

}  // namespace

class BatchGenerator::Engine {
 public:
  Engine(CausalLM& model, const BatchLimits& limits)
      : limits_(detail::completed(limits, model.config())), model_(model), mode_(model) {
    open();
  }

  RequestId submit(GenerateRequest request);
  bool cancel(RequestId id);
  bool step();
  bool wait(double seconds);
  BatchStatus status() const {
    const std::lock_guard lock(mutex_);
    BatchStatus status = status_;
    status.waiting = static_cast<std::int64_t>(queue_.size());
    // Also those that are between the two.
    status.running = static_cast<std::int64_t>(alive_.size()) - status.waiting;
    return status;
  }
  const BatchLimits& limits() const { return limits_; }
  void load_adapter(const std::string& name, const std::filesystem::path& dir);
  void unload_adapter(const std::string& name);
  std::vector<std::string> adapters() const;
  void forget_prefixes() {
    const std::lock_guard stepping(stepping_);
    if (forward_ != nullptr) forward_->store().forget();
  }

 private:
  NamedAdapter adapter_named(const std::string& name) const;
  void open();
  void check(const GenerateRequest& request) const;
  void end_cancelled();
  void admit();
  void prefill();
  void decode();
  void feed(std::span<RunningRequest* const> requests, std::int64_t count);
  void draw(std::span<RunningRequest* const> requests, const LazyTensor& logits);
  bool make_room(RunningRequest& request, std::int64_t count);
  void deliver(RunningRequest& request, const TokenEvent& event);
  void finish(RunningRequest& request);
  void fail_all(const std::string& why);
  bool reopen();
  std::list<RequestPtr>::iterator place_of(const RunningRequest& request);
  std::vector<RunningRequest*> all_running() const;
  bool runs(const RunningRequest& request) { return place_of(request) != running_.end(); }
  void update_status();
  bool has_work() const;

  const BatchLimits limits_;
  CausalLM& model_;
  const EvaluationMode mode_;
  std::mutex stepping_;  // of step() and load_adapter(); taken before mutex_
  std::unique_ptr<AdapterBank> bank_;
  std::unique_ptr<PagedForward> forward_;
  std::uint64_t loads_ = 0;
  std::list<RequestPtr> running_;  // in the order in which they came
  std::list<RequestPtr> ended_;    // in this step

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RequestPtr> queue_;
  std::unordered_set<RequestId> alive_;
  std::unordered_set<RequestId> cancelled_;
  std::map<std::string, NamedAdapter> adapters_;
  RequestId next_ = 1;
  BatchStatus status_;
};

void BatchGenerator::Engine::open() {
  forward_.reset();
  forward_ = std::make_unique<PagedForward>(model_, PagingOptions{.positions = limits_.cache_positions,
                                                                  .context = limits_.max_context,
                                                                  .texts = limits_.max_batch,
                                                                  .chunk = limits_.prefill_chunk,
                                                                  .reuse = limits_.reuse_prefixes});
  forward_->set_adapters(bank_.get());
  update_status();
}

void BatchGenerator::Engine::check(const GenerateRequest& request) const {
  if (request.prompt.empty())
    throw ValueError("generate: the prompt has no tokens; give the model at least one to go on from");
  const std::int64_t vocabulary = model_.config().vocab_size;
  for (std::size_t i = 0; i < request.prompt.size(); ++i)
    if (request.prompt[i] < 0 || request.prompt[i] >= vocabulary)
      throw ValueError(fmt::format("token id {} at position {} is outside of the model's vocabulary of {}",
                                   request.prompt[i], i, vocabulary));
  if (static_cast<std::int64_t>(request.prompt.size()) > limits_.max_context)
    throw ValueError(
        fmt::format("generate: the prompt has {} tokens, more than the {} positions of a request",
                    request.prompt.size(), limits_.max_context));
  if (request.max_tokens < 0) throw ValueError("generate: max_tokens must not be negative");
  if (request.logprobs && (*request.logprobs < 0 || *request.logprobs > vocabulary))
    throw ValueError(fmt::format("generate: {} log-probabilities a token, of a vocabulary of {}",
                                 *request.logprobs, vocabulary));
}

NamedAdapter BatchGenerator::Engine::adapter_named(const std::string& name) const {
  if (name.empty()) return {};
  const auto loaded = adapters_.find(name);
  if (loaded == adapters_.end()) throw ValueError(fmt::format("generate: no adapter '{}' is loaded", name));
  return loaded->second;
}

void BatchGenerator::Engine::load_adapter(const std::string& name, const std::filesystem::path& dir) {
  if (name.empty()) throw ValueError("BatchGenerator: an adapter needs a name");
  const std::lock_guard stepping(stepping_);
  if (bank_ == nullptr) {
    bank_ = std::make_unique<AdapterBank>(model_);
    if (forward_ != nullptr) forward_->set_adapters(bank_.get());
  }
  NamedAdapter loaded{bank_->load(dir), fmt::format("{}#{}", name, ++loads_)};
  const std::lock_guard lock(mutex_);
  adapters_[name] = std::move(loaded);
}

void BatchGenerator::Engine::unload_adapter(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (adapters_.erase(name) == 0)
    throw ValueError(fmt::format("BatchGenerator: no adapter '{}' is loaded", name));
}

std::vector<std::string> BatchGenerator::Engine::adapters() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, adapter] : adapters_) names.push_back(name);
  return names;
}

RequestId BatchGenerator::Engine::submit(GenerateRequest request) {
  check(request);
  const std::lock_guard lock(mutex_);
  if (static_cast<std::int64_t>(alive_.size()) - limits_.max_batch >= limits_.max_queue)
    throw QueueFull(fmt::format("{} requests are running or wait; try again later", alive_.size()));
  const RequestId id = next_;
  NamedAdapter adapter = adapter_named(request.adapter);
  queue_.push_back(std::make_unique<RunningRequest>(id, std::move(request), std::move(adapter)));
  ++next_;
  alive_.insert(id);
  changed_.notify_all();
  return id;
}

bool BatchGenerator::Engine::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (!alive_.contains(id)) return false;
  cancelled_.insert(id);
  changed_.notify_all();
  return true;
}

bool BatchGenerator::Engine::has_work() const {
  const std::lock_guard lock(mutex_);
  return !alive_.empty();
}

bool BatchGenerator::Engine::wait(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !alive_.empty(); });
}

/// Tells the receiver; where that was the last event, the request ends.
void BatchGenerator::Engine::deliver(RunningRequest& request, const TokenEvent& event) {
  const bool go_on = request.tell(event);
  if (event.finish || !go_on) finish(request);
}

/// Frees the pages and takes the request out of the batch; it lives on until the next step.
void BatchGenerator::Engine::finish(RunningRequest& request) {
  if (forward_ != nullptr) request.leave(forward_->store());
  const auto place = place_of(request);
  if (place != running_.end()) ended_.splice(ended_.end(), running_, place);
  const std::lock_guard lock(mutex_);
  alive_.erase(request.id());
  cancelled_.erase(request.id());
  ++status_.finished;
}

void BatchGenerator::Engine::end_cancelled() {
  std::unordered_set<RequestId> cancelled;
  std::vector<RequestPtr> waiting;
  {
    const std::lock_guard lock(mutex_);
    cancelled = cancelled_;
    for (auto request = queue_.begin(); request != queue_.end();) {
      const bool ends = cancelled.contains((*request)->id());
      if (ends) waiting.push_back(std::move(*request));
      request = ends ? queue_.erase(request) : request + 1;
    }
  }
  for (const RequestPtr& request : waiting) {
    request->tell(request->ended(FinishReason::cancelled));
    finish(*request);
  }
  for (RunningRequest* request : all_running()) {
    if (!cancelled.contains(request->id())) continue;
    request->tell(request->ended(FinishReason::cancelled));
    finish(*request);
  }
}

void BatchGenerator::Engine::admit() {
  while (static_cast<std::int64_t>(running_.size()) < limits_.max_batch) {
    RequestPtr request;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) return;
      request = std::move(queue_.front());
      queue_.pop_front();
    }
    if (request->request().max_tokens == 0) {
      request->tell(request->ended(FinishReason::length));
      finish(*request);
      continue;
    }
    PageStore& store = forward_->store();
    request->join(store);
    // All prompts are to fit: else requests would take pages from one another in turns.
    std::int64_t due = request->pages_due(store);
    for (const RequestPtr& other : running_) due += other->pages_due(store);
    if (!running_.empty() && due > store.available()) {
      request->leave(store);
      const std::lock_guard lock(mutex_);
      queue_.push_front(std::move(request));
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      status_.reused_tokens += static_cast<std::uint64_t>(request->fed());
    }
    running_.push_back(std::move(request));
  }
}

/// Takes pages from those that came last, until there are enough. False where the request had to go itself.
bool BatchGenerator::Engine::make_room(RunningRequest& request, std::int64_t count) {
  while (!request.reserve(forward_->store(), count)) {
    RequestPtr last = std::move(running_.back());
    running_.pop_back();
    const bool was_it = last.get() == &request;
    last->leave(forward_->store());
    const std::lock_guard lock(mutex_);
    ++status_.preempted;
    queue_.push_front(std::move(last));
    if (was_it) return false;
  }
  return true;
}

/// Computes the next `count` tokens of each request, and draws where those were all.
void BatchGenerator::Engine::feed(std::span<RunningRequest* const> requests, std::int64_t count) {
  std::vector<PagedRow> rows;
  rows.reserve(requests.size());
  for (const RunningRequest* request : requests) rows.push_back(request->row(count));
  LazyTensor result = forward_->feed(rows);
  const bool draws = requests.front()->waiting() == count;
  const bool choose =
      std::all_of(requests.begin(), requests.end(), [](const auto* r) { return r->takes_choices(); });
  if (choose) result = stop_gradient(most_likely(result));
  std::vector<LazyTensor> outputs = forward_->state();
  outputs.push_back(result);
  eval(outputs);
  for (RunningRequest* request : requests) request->feed(forward_->store(), count);
  if (!draws) return;
  {
    const std::lock_guard lock(mutex_);
    status_.generated_tokens += requests.size();
  }
  if (!choose) return draw(requests, result);
  const std::vector<std::int32_t> ids = result.to_vector<std::int32_t>();
  for (std::size_t r = 0; r < requests.size(); ++r) {
    TokenEvent event;
    try {
      event = requests[r]->take(ids[r], limits_.max_context);
    } catch (...) {
      event = requests[r]->ended(FinishReason::failed, detail::message_of_current_exception());
    }
    deliver(*requests[r], event);
  }
}

void BatchGenerator::Engine::draw(std::span<RunningRequest* const> requests, const LazyTensor& logits) {
  const std::vector<float> values = logits.to_vector<float>();
  const auto width = static_cast<std::size_t>(logits.shape(1));
  for (std::size_t r = 0; r < requests.size(); ++r) {
    TokenEvent event;
    try {
      event = requests[r]->draw(std::span(values).subspan(r * width, width), limits_.max_context);
    } catch (...) {
      event = requests[r]->ended(FinishReason::failed, detail::message_of_current_exception());
    }
    deliver(*requests[r], event);
  }
}

/// Computes up to limits_.prefill_chunk tokens of prompts, those that came first first.
void BatchGenerator::Engine::prefill() {
  std::int64_t budget = limits_.prefill_chunk;
  for (RunningRequest* request : all_running()) {
    while (budget > 0 && runs(*request) && request->waiting() > 1) {
      const std::int64_t count = forward_->piece_of(std::min(request->waiting(), budget));
      if (!make_room(*request, count)) break;
      feed({&request, 1}, count);
      budget -= count;
      const std::lock_guard lock(mutex_);
      status_.prompt_tokens += static_cast<std::uint64_t>(count);
    }
  }
}

/// Computes one token of every request that waits for no more than one.
void BatchGenerator::Engine::decode() {
  std::vector<RunningRequest*> rows;
  for (RunningRequest* request : all_running())
    if (runs(*request) && request->waiting() == 1 && make_room(*request, 1)) rows.push_back(request);
  // Room is made by those that came last, which may be among them.
  std::erase_if(rows, [&](const RunningRequest* row) { return !runs(*row); });
  if (!rows.empty()) feed(rows, 1);
}

void BatchGenerator::Engine::fail_all(const std::string& why) {
  for (RunningRequest* request : all_running()) {
    request->tell(request->ended(FinishReason::failed, why));
    finish(*request);
  }
  reopen();  // what the cache holds is not known any more
}

/// Opens the cache anew. Where that fails, as it does while a device has no memory, nobody can be served:
/// those that wait are told, and the next step tries again.
bool BatchGenerator::Engine::reopen() {
  std::string why;
  try {
    open();
    return true;
  } catch (...) {
    why = detail::message_of_current_exception();
  }
  std::deque<RequestPtr> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(queue_);
    status_.pages = status_.pages_in_use = status_.pages_reusable = 0;
    status_.cache_bytes = 0;
  }
  for (const RequestPtr& request : waiting) {
    request->tell(request->ended(FinishReason::failed, why));
    finish(*request);
  }
  return false;
}

std::list<RequestPtr>::iterator BatchGenerator::Engine::place_of(const RunningRequest& request) {
  return std::find_if(running_.begin(), running_.end(),
                      [&](const RequestPtr& r) { return r.get() == &request; });
}

/// While they are gone through, requests may end, or have to leave: see runs().
std::vector<RunningRequest*> BatchGenerator::Engine::all_running() const {
  std::vector<RunningRequest*> all;
  for (const RequestPtr& request : running_) all.push_back(request.get());
  return all;
}

void BatchGenerator::Engine::update_status() {
  const PageStore::Counts pages = forward_->store().counts();
  const std::lock_guard lock(mutex_);
  status_.pages = pages.pages;
  status_.pages_in_use = pages.in_use;
  status_.pages_reusable = pages.reusable;
  status_.page_positions = PagedForward::kPagePositions;
  status_.cache_bytes = forward_->cache_bytes();
}

bool BatchGenerator::Engine::step() {
  const std::lock_guard stepping(stepping_);
  ended_.clear();
  if (forward_ == nullptr && !reopen()) return has_work();
  end_cancelled();
  admit();
  try {
    prefill();
    decode();
  } catch (...) {
    fail_all(detail::message_of_current_exception());
  }
  if (forward_ != nullptr) update_status();
  return has_work();
}

BatchGenerator::BatchGenerator(CausalLM& model, const BatchLimits& limits)
    : engine_(std::make_unique<Engine>(model, limits)) {}
BatchGenerator::~BatchGenerator() = default;

RequestId BatchGenerator::submit(GenerateRequest request) { return engine_->submit(std::move(request)); }
bool BatchGenerator::cancel(RequestId id) { return engine_->cancel(id); }
bool BatchGenerator::step() { return engine_->step(); }
void BatchGenerator::run() {
  while (engine_->step()) {
  }
}
bool BatchGenerator::wait(double seconds) { return engine_->wait(seconds); }
BatchStatus BatchGenerator::status() const { return engine_->status(); }
const BatchLimits& BatchGenerator::limits() const { return engine_->limits(); }
std::int64_t BatchGenerator::bytes_per_position(const CausalLM& model) {
  return PagedForward::bytes_per_position(model);
}

void BatchGenerator::load_adapter(const std::string& name, const std::filesystem::path& dir) {
  engine_->load_adapter(name, dir);
}
void BatchGenerator::unload_adapter(const std::string& name) { engine_->unload_adapter(name); }
void BatchGenerator::forget_prefixes() { engine_->forget_prefixes(); }
std::vector<std::string> BatchGenerator::adapters() const { return engine_->adapters(); }

}  // namespace caldera
