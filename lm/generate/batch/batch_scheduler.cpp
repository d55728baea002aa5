#include "lm/generate/batch/batch_scheduler.h"

#include <fmt/format.h>

#include <utility>

#include "lm/base/file_identity.h"
#include "lm/generate/batch/complete_limits.h"
#include "lm/generate/current_exception.h"

namespace caldera {

BatchScheduler::BatchScheduler(CausalLM& model, const BatchLimits& limits)
    : limits_(detail::completed(limits, model.config())),
      model_(model),
      mode_(model),
      frequencies_(model.config()),
      book_(limits_) {
  open();
}

void BatchScheduler::check(const GenerateRequest& request) const {
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
  if (request.prompt_logprobs && (*request.prompt_logprobs < 0 || *request.prompt_logprobs > vocabulary))
    throw ValueError(
        fmt::format("generate: {} log-probabilities a token of the prompt, of a vocabulary of {}",
                    *request.prompt_logprobs, vocabulary));
  if (request.shift_keeps && (*request.shift_keeps < 0 || *request.shift_keeps > limits_.max_context / 2))
    throw ValueError(fmt::format("generate: {} tokens stay where the context of {} is full, at most a half",
                                 *request.shift_keeps, limits_.max_context));
  check_decoding(request, vocabulary);
}

RequestId BatchScheduler::submit(GenerateRequest request) {
  check(request);
  NamedAdapter adapter = adapter_named(request.adapter);
  return book_.add([&](RequestId id) {
    return std::make_unique<RunningRequest>(id, std::move(request), std::move(adapter), frequencies_,
                                            limits_.max_context);
  });
}

NamedAdapter BatchScheduler::adapter_named(const std::string& name) const {
  if (name.empty()) return {};
  const std::lock_guard lock(adapters_mutex_);
  const auto loaded = adapters_.find(name);
  if (loaded == adapters_.end())
    throw UnknownAdapter(fmt::format("generate: no adapter '{}' is loaded", name));
  return loaded->second;
}

void BatchScheduler::load_adapter(const std::string& name, const std::filesystem::path& dir) {
  if (name.empty()) throw ValueError("BatchGenerator: an adapter needs a name");
  const std::lock_guard stepping(stepping_);
  // A first bank changes the model's modules: where the folder is no good, it goes again.
  std::unique_ptr<AdapterBank> first = bank_ == nullptr ? std::make_unique<AdapterBank>(model_) : nullptr;
  NamedAdapter loaded{(first != nullptr ? first : bank_)->load(dir), fmt::format("{}#{}", name, loads_ + 1),
                      limits_.prompt_cache == nullptr ? std::string() : file_identity(dir)};
  ++loads_;
  if (first != nullptr) {
    bank_ = std::move(first);
    if (forward_ != nullptr) forward_->set_adapters(bank_.get());
  }
  const std::lock_guard lock(adapters_mutex_);
  adapters_[name] = std::move(loaded);
}

void BatchScheduler::unload_adapter(const std::string& name) {
  const std::lock_guard lock(adapters_mutex_);
  if (adapters_.erase(name) == 0)
    throw ValueError(fmt::format("BatchGenerator: no adapter '{}' is loaded", name));
}

std::vector<std::string> BatchScheduler::adapters() const {
  const std::lock_guard lock(adapters_mutex_);
  std::vector<std::string> names;
  for (const auto& [name, adapter] : adapters_) names.push_back(name);
  return names;
}

void BatchScheduler::forget_prefixes() {
  const std::lock_guard stepping(stepping_);
  changed_ = true;
  if (forward_ != nullptr) forward_->forget();
}

void BatchScheduler::open() {
  forward_.reset();
  forward_ = std::make_unique<PagedForward>(model_, PagingOptions{.positions = limits_.cache_positions,
                                                                  .context = limits_.max_context,
                                                                  .texts = limits_.max_batch,
                                                                  .chunk = limits_.prefill_chunk,
                                                                  .reuse = limits_.reuse_prefixes});
  forward_->set_adapters(bank_.get());
  update_status();
}

/// Opens the cache again. Where that fails, as it does while a device has no memory, nobody can be served:
/// those that wait are told, and the next step tries again.
bool BatchScheduler::reopen() {
  std::string why;
  try {
    open();
    return true;
  } catch (...) {
    why = detail::message_of_current_exception();
  }
  refuse_all(why);
  return false;
}

/// Ends every request that runs: what the cache holds is not known any more.
void BatchScheduler::fail_all(const std::string& why) {
  std::unique_ptr<PagedForward> lost = std::move(forward_);  // nothing of it is saved
  for (RunningRequest* request : all_running()) {
    request->leave(lost->store());
    end(*request, FinishReason::failed, why);
  }
}

/// Ends every request that waits.
void BatchScheduler::refuse_all(const std::string& why) {
  book_.count([](BatchStatus& status) {
    status.pages = status.pages_in_use = status.pages_reusable = 0;
    status.cache_bytes = 0;
  });
  for (const RequestPtr& request : book_.take_waiting()) end(*request, FinishReason::failed, why);
}

void BatchScheduler::update_status() {
  const PageStore::Counts pages = forward_->store().counts();
  const std::int64_t bytes = forward_->cache_bytes();
  book_.count([&](BatchStatus& status) {
    status.pages = pages.pages;
    status.pages_in_use = pages.in_use;
    status.pages_reusable = pages.reusable;
    status.page_positions = PagedForward::kPagePositions;
    status.cache_bytes = bytes;
  });
}

/// Tells the receiver; where that was the last event, the request ends.
void BatchScheduler::deliver(RunningRequest& request, TokenEvent event) {
  // Who was told that the request is cancelled is not to see another end of it.
  const bool cancelled = event.finish && !book_.begin_end(request.id());
  if (cancelled) event.finish.reset();
  const bool go_on = request.tell(event);
  if (cancelled && go_on) return end(request, FinishReason::cancelled);
  if (event.finish || !go_on) finish(request);
}

/// Ends a request without a token.
void BatchScheduler::end(RunningRequest& request, FinishReason reason, const std::string& error) {
  if (book_.begin_end(request.id()))
    request.tell(request.ended(reason, error));
  else
    request.tell(request.ended(FinishReason::cancelled));
  finish(request);
}

/// Frees the pages and takes the request out of the batch; it lives on until the next step.
void BatchScheduler::finish(RunningRequest& request) {
  if (forward_ != nullptr) {
    save(request, request.fed());
    request.leave(forward_->store());
  }
  const auto place = place_of(request);
  if (place != running_.end()) ended_.splice(ended_.end(), running_, place);
  book_.ended(request.id());
}

std::list<RequestPtr>::iterator BatchScheduler::place_of(const RunningRequest& request) {
  return std::find_if(running_.begin(), running_.end(),
                      [&](const RequestPtr& r) { return r.get() == &request; });
}

/// While they are gone through, requests may end, or have to leave: see runs().
std::vector<RunningRequest*> BatchScheduler::all_running() const {
  std::vector<RunningRequest*> all;
  for (const RequestPtr& request : running_) all.push_back(request.get());
  return all;
}

}  // namespace caldera
