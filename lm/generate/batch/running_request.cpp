#include "lm/generate/batch/running_request.h"

#include <algorithm>

#include "lm/generate/sampling/log_probabilities.h"

namespace caldera {

RunningRequest::RunningRequest(RequestId id, GenerateRequest request, NamedAdapter adapter,
                               const TextFrequencies& frequencies)
    : id_(id),
      request_(std::move(request)),
      adapter_(std::move(adapter)),
      sampler_(request_.sampling),
      ids_(request_.prompt),
      prompt_size_(ids_.size()),
      frequencies_(frequencies) {}

bool RunningRequest::takes_choices() const {
  return request_.sampling.is_greedy() && request_.constraint == nullptr && !request_.logprobs;
}

void RunningRequest::join(PageStore& store) {
  text_length_ = frequencies_.text_length(static_cast<std::int64_t>(prompt_size_),
                                          static_cast<std::int64_t>(ids_.size()));
  text_ = store.begin(adapter_.kind + frequencies_.kind(text_length_), ids_, fed_);
}

void RunningRequest::leave(PageStore& store) {
  store.release(text_);
  fed_ = 0;
}

void RunningRequest::preempt(PageStore& store) {
  leave(store);
  preempted_ = true;
}

void RunningRequest::catch_up(PageStore& store) { fed_ = std::max(fed_, store.advance(text_, ids_)); }

void RunningRequest::outgrow(PageStore& store) {
  if (!frequencies_.differ(text_length_, static_cast<std::int64_t>(ids_.size()))) return;
  leave(store);
  join(store);
}

std::int64_t RunningRequest::settle_reused() {
  const std::int64_t found =
      std::max<std::int64_t>(std::min(fed_, static_cast<std::int64_t>(prompt_size_)) - settled_, 0);
  settled_ = std::max(settled_, fed_);
  reused_ += found;
  return found;
}

std::int64_t RunningRequest::pages_due(const PageStore& store, std::int64_t growth) const {
  const std::int64_t page = store.page_positions();
  // The last token needs no position.
  const std::int64_t more = std::clamp<std::int64_t>(request_.max_tokens - generated() - 1, 0, growth);
  return std::max<std::int64_t>((std::ssize(ids_) + more + page - 1) / page - text_.blocks(), 0);
}

PagedRow RunningRequest::row(std::int64_t count) const {
  return {.ids = ids().subspan(static_cast<std::size_t>(fed_), static_cast<std::size_t>(count)),
          .position = fed_,
          .text = &text_,
          .adapter = adapter_.adapter == nullptr ? 0 : adapter_.adapter->slot(),
          .text_length = text_length_};
}

RunningRequest::Fed RunningRequest::feed(PageStore& store, std::int64_t count) {
  Fed fed;
  fed.again = std::clamp<std::int64_t>(settled_ - fed_, 0, count);
  const std::int64_t first = fed_ + fed.again;
  fed_ += count;
  fed.of_prompt = std::max<std::int64_t>(std::min(fed_, static_cast<std::int64_t>(prompt_size_)) - first, 0);
  settled_ = std::max(settled_, fed_);
  store.written(text_, ids().first(static_cast<std::size_t>(fed_)));
  return fed;
}

TokenEvent RunningRequest::draw(std::span<const float> logits, std::int64_t context) {
  SamplingContext around{.seen = ids_, .prompt_size = prompt_size_};
  if (request_.constraint != nullptr) around.allowed = request_.constraint->allowed();
  const std::int32_t id = sampler_.next(logits, around);
  if (request_.constraint != nullptr) request_.constraint->accept(id);
  TokenEvent event = drawn(id, context);
  if (!request_.logprobs) return event;
  const TokenReport report = report_token(logits, id, static_cast<std::size_t>(*request_.logprobs));
  event.logprob = static_cast<float>(report.drawn.log_probability);
  for (const TokenLogProbability& other : report.top)
    event.top.push_back({other.id, static_cast<float>(other.log_probability)});
  return event;
}

TokenEvent RunningRequest::take(std::int32_t choice, std::int64_t context) {
  return drawn(checked_choice(choice), context);
}

TokenEvent RunningRequest::drawn(std::int32_t id, std::int64_t context) {
  ids_.push_back(id);
  TokenEvent event = ended(FinishReason::length);
  event.id = id;
  const auto& stops = request_.stop_ids;
  // The last token needs no position.
  const bool is_last = generated() >= request_.max_tokens || static_cast<std::int64_t>(ids_.size()) > context;
  if (std::find(stops.begin(), stops.end(), id) != stops.end())
    event.finish = FinishReason::stop;
  else if (!is_last)
    event.finish.reset();
  return event;
}

TokenEvent RunningRequest::ended(FinishReason reason, std::string error) const {
  TokenEvent event;
  event.request = id_;
  event.finish = reason;
  event.error = std::move(error);
  event.prompt_tokens = static_cast<std::int64_t>(prompt_size_);
  event.reused_tokens = reused_;
  event.generated_tokens = generated();
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
