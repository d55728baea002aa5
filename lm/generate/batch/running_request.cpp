#include "lm/generate/batch/running_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace caldera {
namespace {

// Positions of a text that goes on where its context is full.
constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 2;

}  // namespace

RunningRequest::RunningRequest(RequestId id, GenerateRequest request, NamedAdapter adapter,
                               const TextFrequencies& frequencies, std::int64_t context)
    : id_(id),
      request_(std::move(request)),
      adapter_(std::move(adapter)),
      sequence_(request_.prompt, request_, request_.shift_keeps ? kEndless : context),
      frequencies_(frequencies) {}

void RunningRequest::join(PageStore& store) {
  text_length_ = frequencies_.text_length(sequence_.prompt_left(), sequence_.size());
  std::string kind = adapter_.kind + frequencies_.kind(text_length_);
  // What others have computed says nothing of its logits.
  if (scores_prompt()) kind += fmt::format("|{}", id_);
  text_ = store.begin(kind, sequence_.ids(), fed_);
}

void RunningRequest::leave(PageStore& store) {
  store.release(text_);
  fed_ = 0;
  drop_draft();
}

void RunningRequest::preempt(PageStore& store) {
  leave(store);
  preempted_ = true;
}

void RunningRequest::catch_up(PageStore& store) {
  fed_ = std::max(fed_, store.advance(text_, sequence_.ids()));
}

void RunningRequest::outgrow(PageStore& store) {
  if (!frequencies_.differ(text_length_, sequence_.size())) return;
  leave(store);
  join(store);
}

bool RunningRequest::shift(PageStore& store, std::int64_t context) {
  if (!request_.shift_keeps || sequence_.size() <= context) return false;
  leave(store);
  const std::int64_t kept = *request_.shift_keeps;
  sequence_.forget(kept, std::max<std::int64_t>((sequence_.size() - kept) / 2, 1));
  settled_ = sequence_.size() - 1;  // which are computed again
  join(store);
  return true;
}

void RunningRequest::restored(PageStore& store, std::int64_t end) {
  fed_ = end;
  store.written(text_, sequence_.ids().first(static_cast<std::size_t>(fed_)));
}

std::int64_t RunningRequest::settle_reused() {
  const std::int64_t found = std::max<std::int64_t>(std::min(fed_, sequence_.prompt_left()) - settled_, 0);
  settled_ = std::max(settled_, fed_);
  reused_ += found;
  return found;
}

std::int64_t RunningRequest::pages_due(const PageStore& store, std::int64_t growth) const {
  const std::int64_t page = store.page_positions();
  // The last token needs no position.
  const std::int64_t more = std::clamp<std::int64_t>(sequence_.left() - 1, 0, growth);
  return std::max<std::int64_t>((sequence_.size() + more + page - 1) / page - text_.blocks(), 0);
}

void RunningRequest::propose(PageStore& store, std::int64_t most, std::int64_t vocabulary) {
  draft_ = sequence_.draft(std::min(most, frequencies_.most_drafts(fed_)), vocabulary);
  if (draft_.ids.empty()) return;
  fed_ids_ = sequence_.fed_for(draft_, vocabulary);
  if (!reserve(store, std::ssize(fed_ids_))) drop_draft();
}

void RunningRequest::drop_draft() {
  draft_ = {};
  fed_ids_.clear();
}

PagedRow RunningRequest::row(std::int64_t count) const {
  const auto next = sequence_.ids().subspan(static_cast<std::size_t>(fed_), static_cast<std::size_t>(count));
  return {.ids = draft_.ids.empty() ? next : std::span(fed_ids_),
          .position = fed_,
          .text = &text_,
          .adapter = adapter_.adapter == nullptr ? 0 : adapter_.adapter->slot(),
          .text_length = text_length_};
}

void RunningRequest::score(std::span<const float> logits, std::int64_t count) {
  const std::size_t width = logits.size() / static_cast<std::size_t>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t next = fed_ + i + 1;
    // One that gave its pages up is computed again.
    if (next != scored_ + 1 || next >= sequence_.prompt_size()) continue;
    prompt_reports_.push_back(report_token(logits.subspan(static_cast<std::size_t>(i) * width, width),
                                           sequence_.ids()[static_cast<std::size_t>(next)],
                                           static_cast<std::size_t>(*request_.prompt_logprobs)));
    ++scored_;
  }
}

RunningRequest::Fed RunningRequest::feed(PageStore& store, std::int64_t count) {
  Fed fed;
  fed.again = std::clamp<std::int64_t>(settled_ - fed_, 0, count);
  const std::int64_t first = fed_ + fed.again;
  fed_ += count;
  fed.of_prompt = std::max<std::int64_t>(std::min(fed_, sequence_.prompt_left()) - first, 0);
  settled_ = std::max(settled_, fed_);
  store.written(text_, sequence_.ids().first(static_cast<std::size_t>(fed_)));
  return fed;
}

TokenEvent RunningRequest::check(std::span<const float> logits, std::size_t i, bool& accepted) {
  ChosenToken token = sequence_.check(logits, draft_, i);
  accepted = token.accepted;
  return chosen(std::move(token));
}

TokenEvent RunningRequest::take(std::int32_t choice, std::size_t i, bool& accepted) {
  ChosenToken token = sequence_.take(choice, draft_, i);
  accepted = token.accepted;
  return chosen(std::move(token));
}

TokenEvent RunningRequest::chosen(ChosenToken token) {
  TokenEvent event = this->event();
  event.id = token.id;
  event.report = std::move(token.report);
  event.text = std::move(token.decoded.text);
  event.stop = std::move(token.decoded.stop);
  event.finish = token.decoded.finish;
  return event;
}

TokenEvent RunningRequest::ended(FinishReason reason, std::string error) {
  TokenEvent event = this->event();
  event.finish = reason;
  event.error = std::move(error);
  if (reason == FinishReason::cancelled) event.text = sequence_.rest();
  return event;
}

TokenEvent RunningRequest::event() {
  TokenEvent event;
  event.prompt_reports = std::exchange(prompt_reports_, {});
  event.request = id_;
  event.prompt_tokens = sequence_.prompt_size();
  event.reused_tokens = reused_;
  event.generated_tokens = generated();
  event.drafted_tokens = sequence_.drafted_tokens();
  event.accepted_tokens = sequence_.accepted_tokens();
  return event;
}

bool RunningRequest::tell(const TokenEvent& event) const {
  if (!request_.on_event) return true;
  try {
    return request_.on_event(event);
  } catch (...) {  // of any type: it is user code
    return false;
  }
}

}  // namespace caldera
