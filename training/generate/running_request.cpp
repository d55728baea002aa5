#include "training/generate/running_request.h"

#include <algorithm>

#include "training/generate/sampling/log_probabilities.h"

namespace caldera {

RunningRequest::RunningRequest(RequestId id, GenerateRequest request, NamedAdapter adapter)
    : id_(id),
      request_(std::move(request)),
      adapter_(std::move(adapter)),
      sampler_(request_.sampling),
      ids_(request_.prompt),
      prompt_size_(ids_.size()) {}

bool RunningRequest::takes_choices() const {
  return request_.sampling.is_greedy() && request_.constraint == nullptr && !request_.logprobs;
}

void RunningRequest::join(PageStore& store) {
  text_ = store.begin(adapter_.kind, ids_, fed_);
  if (!reused_) reused_ = fed_;
}

void RunningRequest::leave(PageStore& store) {
  store.release(text_);
  fed_ = 0;
}

std::int64_t RunningRequest::pages_due(const PageStore& store) const {
  const std::int64_t page = store.page_positions();
  return std::max<std::int64_t>((std::ssize(ids_) + page - 1) / page - text_.blocks(), 0);
}

PagedRow RunningRequest::row(std::int64_t count) const {
  return {.ids = ids().subspan(static_cast<std::size_t>(fed_), static_cast<std::size_t>(count)),
          .position = fed_,
          .text = &text_,
          .adapter = adapter_.adapter == nullptr ? 0 : adapter_.adapter->slot()};
}

void RunningRequest::feed(PageStore& store, std::int64_t count) {
  fed_ += count;
  store.written(text_, ids().first(static_cast<std::size_t>(fed_)));
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
  event.reused_tokens = reused_.value_or(0);
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
