// A step of a BatchGenerator: who joins, what is computed, who is told.
#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>
#include <utility>

#include "engine/device/cpu_threads.h"
#include "engine/runtime/runtime.h"
#include "lm/generate/batch/batch_scheduler.h"
#include "lm/generate/current_exception.h"
#include "ops/core/creation.h"

namespace caldera {
namespace {

// Pages that are to be free for each text to grow into when one joins; for one that had to leave before,
// more: it is not to be sent away again at once.
constexpr std::int64_t kGrowthPages = 1;
constexpr std::int64_t kGrowthPagesOnReturn = 4;

}  // namespace

bool BatchScheduler::step() {
  const std::lock_guard stepping(stepping_);
  ended_.clear();
  if (failed_) return book_.has_work();
  if (forward_ == nullptr && !reopen()) return book_.has_work();
  end_cancelled();
  admit();
  try {
    prefill();
    decode();
  } catch (const OutOfMemoryError& e) {
    fail_all(e.what());
  } catch (const DeviceError& e) {
    failed_ = true;
    book_.close(e.what());
    fail_all(e.what());
    refuse_all(e.what());
  } catch (...) {
    fail_all(detail::message_of_current_exception());
  }
  if (forward_ == nullptr && !failed_) reopen();
  if (forward_ != nullptr) update_status();
  return book_.has_work();
}

void BatchScheduler::end_cancelled() {
  for (const RequestPtr& request : book_.take_cancelled()) end(*request, FinishReason::cancelled);
  for (RunningRequest* request : all_running())
    if (book_.is_cancelled(request->id())) end(*request, FinishReason::cancelled);
}

void BatchScheduler::admit() {
  while (static_cast<std::int64_t>(running_.size()) < limits_.max_batch) {
    RequestPtr request = book_.next();
    if (request == nullptr) return;
    if (request->request().max_tokens == 0 && !request->scores_prompt()) {
      end(*request, FinishReason::length);
      continue;
    }
    PageStore& store = forward_->store();
    request->join(store);
    // All texts are to fit, and to have room to grow: else they would take pages from one another in turns.
    const std::int64_t growth =
        (request->was_preempted() ? kGrowthPagesOnReturn : kGrowthPages) * store.page_positions();
    std::int64_t due = request->pages_due(store, growth);
    for (const RequestPtr& other : running_) due += other->pages_due(store, growth);
    if (!running_.empty() && due > store.available()) {
      request->leave(store);
      return book_.put_back(std::move(request));
    }
    found(*request);
    running_.push_back(std::move(request));
  }
}

/// Counts what was found of a request in the cache.
void BatchScheduler::found(RunningRequest& request) {
  const auto tokens = static_cast<std::uint64_t>(request.settle_reused());
  if (tokens > 0) book_.count([&](BatchStatus& status) { status.reused_tokens += tokens; });
}

/// Takes pages from those that came last, until there are enough. False where the request had to go itself.
bool BatchScheduler::make_room(RunningRequest& request, std::int64_t count) {
  while (!request.reserve(forward_->store(), count)) {
    RequestPtr last = std::move(running_.back());
    running_.pop_back();
    const bool was_it = last.get() == &request;
    last->preempt(forward_->store());
    book_.count([](BatchStatus& status) { ++status.preempted; });
    book_.put_back(std::move(last));
    if (was_it) return false;
  }
  return true;
}

/// Computes up to limits_.prefill_chunk tokens of prompts, those that came first first.
void BatchScheduler::prefill() {
  PageStore& store = forward_->store();
  std::int64_t budget = limits_.prefill_chunk;
  for (RunningRequest* request : all_running()) {
    if (saves(*request) && request->looks_for_saved()) restore(*request);
    while (budget > 0 && runs(*request) && request->waiting() > 1) {
      // A text that began alike may have gone this way in the meantime.
      request->catch_up(store);
      found(*request);
      if (request->waiting() < 2) break;
      std::int64_t count = forward_->piece_of(std::min(request->waiting(), budget));
      if (request->scores_prompt())
        count = std::min({count, PagedForward::kScoredPiece, request->waiting() - 1});
      if (!make_room(*request, count)) break;
      if (request->scores_prompt())
        score(*request, count);
      else
        feed({&request, 1}, count);
      budget -= count;
    }
    if (runs(*request) && request->waiting() == 1 && request->request().max_tokens == 0)
      end(*request, FinishReason::length);
  }
}

/// Computes one token of every request that waits for no more than one, and what its drafter guesses behind
/// it. Those with drafts have a call of their own: the others are not filled up to the length of theirs.
void BatchScheduler::decode() {
  const auto decodes = [&](RunningRequest* request) { return runs(*request) && request->waiting() == 1; };
  // Drafts take pages that are left, and none from another request: first all have room for their token.
  for (RunningRequest* request : all_running())
    if (decodes(request)) make_room(*request, 1);
  for (RunningRequest* request : all_running())
    if (decodes(request) && request->request().drafts()) propose(*request);
  std::vector<RunningRequest*> plain, drafting;
  for (RunningRequest* request : all_running())
    if (decodes(request)) (request->draft().ids.empty() ? plain : drafting).push_back(request);
  if (!plain.empty()) feed(plain, 1);
  if (!drafting.empty()) feed(drafting, 1);
}

void BatchScheduler::propose(RunningRequest& request) {
  try {
    // A text that may go beyond its context is to have room for the last token and the draft.
    const std::int64_t room = limits_.max_context - request.fed() - 1;
    request.propose(forward_->store(), std::min(limits_.prefill_chunk - 1, room), model_.config().vocab_size);
  } catch (const DeviceError&) {
    throw;
  } catch (...) {
    end(request, FinishReason::failed, detail::message_of_current_exception());
  }
}

/// Computes the next `count` tokens of a prompt, not the last one, and what the model says behind each.
void BatchScheduler::score(RunningRequest& request, std::int64_t count) {
  RunningRequest* const one = &request;
  try {
    const PagedRow row = request.row(count);
    const LazyTensor logits = forward_->feed_scored(row);
    std::vector<LazyTensor> outputs = forward_->state();
    outputs.push_back(logits);
    eval(outputs);
    const std::vector<float> rows = logits.to_vector<float>();
    const auto width = static_cast<std::size_t>(logits.shape().back());
    request.score(std::span(rows).first(static_cast<std::size_t>(count) * width), count);
  } catch (const OutOfMemoryError& e) {
    return feed_apart({&one, 1}, count, e.what());
  } catch (const DeviceError&) {
    throw;
  } catch (...) {
    return feed_apart({&one, 1}, count, detail::message_of_current_exception());
  }
  note_fed(request, count);
}

/// Computes the next `count` tokens of each request, and chooses where those were all.
void BatchScheduler::feed(Requests requests, std::int64_t count) {
  Answers answers;
  try {
    answers = compute(requests, count);
  } catch (const OutOfMemoryError& e) {
    return feed_apart(requests, count, e.what());
  } catch (const DeviceError&) {
    throw;
  } catch (...) {
    return feed_apart(requests, count, detail::message_of_current_exception());
  }
  settle(requests, count, answers);
}

/// After a call that failed: finds out whose fault it was. Throws where the cache cannot be used any more.
void BatchScheduler::feed_apart(Requests requests, std::int64_t count, const std::string& why) {
  eval(forward_->state());
  if (requests.size() == 1) return end(*requests.front(), FinishReason::failed, why);
  for (RunningRequest* request : requests)
    if (runs(*request)) feed({&request, 1}, count);
}

BatchScheduler::Answers BatchScheduler::compute(Requests requests, std::int64_t count) {
  std::vector<PagedRow> rows;
  rows.reserve(requests.size());
  for (const RunningRequest* request : requests) rows.push_back(request->row(count));
  const bool drafts = !requests.front()->draft().ids.empty();
  const bool draws = requests.front()->waiting() == count;
  const bool choose = std::all_of(requests.begin(), requests.end(),
                                  [](const auto* r) { return r->request().takes_choices(); });
  LazyTensor result = drafts ? forward_->feed_drafts(rows) : forward_->feed(rows, choose);
  if (drafts && choose) result = stop_gradient(most_likely(result));
  std::vector<LazyTensor> outputs = forward_->state();
  outputs.push_back(result);
  eval(outputs);
  Answers answers;
  answers.width = static_cast<std::size_t>(result.shape().back());
  if (drafts) answers.rows = static_cast<std::size_t>(result.shape(1));
  if (draws && choose) answers.ids = result.to_vector<std::int32_t>();
  if (draws && !choose) answers.logits = result.to_vector<float>();
  return answers;
}

/// Draws tokens of long rows side by side, where that is worth waking threads.
void BatchScheduler::draw_ahead(Requests requests, const Answers& answers) {
  constexpr std::size_t kWorth = std::size_t{1} << 18;  // logits a thread: half a millisecond
  std::vector<std::pair<RunningRequest*, std::span<const float>>> rows;
  for (std::size_t r = 0; r < requests.size(); ++r)
    if (requests[r]->waiting() == 0 && requests[r]->draws_alone())
      rows.emplace_back(requests[r],
                        std::span(answers.logits).subspan(r * answers.rows * answers.width, answers.width));
  const std::size_t threads =
      std::min({rows.size() * answers.width / kWorth, rows.size(), static_cast<std::size_t>(cpu_threads())});
  if (threads < 2) return;
  std::atomic<std::size_t> next{0};
  const auto draw = [&] {
    for (std::size_t i = next++; i < rows.size(); i = next++) rows[i].first->draw_ahead(rows[i].second);
  };
  std::vector<std::future<void>> others;  // which wait for their ends
  try {
    while (others.size() + 1 < threads) others.push_back(std::async(std::launch::async, draw));
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are draw all.
  }
  draw();
}

/// Notes what was computed, and where that was all that a request has, chooses what follows.
void BatchScheduler::settle(Requests requests, std::int64_t count, const Answers& answers) {
  for (RunningRequest* request : requests) note_fed(*request, count);
  if (!answers.logits.empty()) draw_ahead(requests, answers);
  for (std::size_t r = 0; r < requests.size(); ++r) {
    RunningRequest& request = *requests[r];
    if (request.waiting() > 0) continue;
    choose(request, answers, r * answers.rows);
    if (!runs(request)) continue;
    request.drop_draft();
    if (request.shift(forward_->store(), limits_.max_context)) {
      found(request);
      book_.count([](BatchStatus& status) { ++status.shifted; });
      continue;
    }
    request.outgrow(forward_->store());
  }
}

void BatchScheduler::note_fed(RunningRequest& request, std::int64_t count) {
  save_before_windows(request, count);
  const RunningRequest::Fed fed = request.feed(forward_->store(), count);
  book_.count([&](BatchStatus& status) {
    status.prompt_tokens += static_cast<std::uint64_t>(fed.of_prompt);
    status.recomputed_tokens += static_cast<std::uint64_t>(fed.again);
  });
}

/// Chooses the token behind what was fed, and where it is the draft's next one, which was fed as well, the
/// one behind that.
void BatchScheduler::choose(RunningRequest& request, const Answers& answers, std::size_t first) {
  book_.count([&](BatchStatus& status) {
    status.drafted_tokens += static_cast<std::uint64_t>(request.draft().ids.size());
  });
  bool accepted = true;
  for (std::size_t i = 0; accepted; ++i) {
    if (i > 0) note_fed(request, 1);
    TokenEvent event;
    try {
      event =
          answers.ids.empty()
              ? request.check(std::span(answers.logits).subspan((first + i) * answers.width, answers.width),
                              i, accepted)
              : request.take(answers.ids[first + i], i, accepted);
    } catch (...) {
      return end(request, FinishReason::failed, detail::message_of_current_exception());
    }
    book_.count([&](BatchStatus& status) {
      ++status.generated_tokens;
      if (accepted) ++status.accepted_tokens;
    });
    deliver(request, std::move(event));
    if (!runs(request)) return;
  }
}

}  // namespace caldera
