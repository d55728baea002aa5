#include "lm/generate/continuation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lm/generate/speculative.h"

namespace caldera {
namespace {

bool is_of_vocabulary(std::int32_t id, std::int64_t vocabulary) { return id >= 0 && id < vocabulary; }

}  // namespace

Continuation::Continuation(std::span<const std::int32_t> prompt, const DecodingOptions& options,
                           std::int64_t positions)
    : options_(options),
      sampler_(options.sampling),
      ids_(prompt.begin(), prompt.end()),
      prompt_size_(prompt.size()),
      prompt_left_(prompt.size()),
      // The last token needs no position.
      text_(options.text, options.stop_ids,
            std::min(options.max_tokens, positions - static_cast<std::int64_t>(prompt.size()) + 1), prompt,
            options.min_tokens) {}

SamplingContext Continuation::context() const {
  SamplingContext context{.seen = ids_, .prompt_size = prompt_left_};
  if (generated() < options_.min_tokens) context.avoided = options_.stop_ids;
  return context;
}

TokenDraft Continuation::draft(std::int64_t most, std::int64_t vocabulary) {
  // What is checked may be kept whole, with one token more.
  most = std::min({most, options_.draft_tokens, left() - 1});
  if (!options_.drafts() || most < 1) return {};
  TokenDraft draft = options_.drafter->propose(context(), most);
  if (!draft.drawn_from.empty() && draft.drawn_from.size() != draft.ids.size())
    throw ValueError(fmt::format("speculative decoding: the drafter gave {} tokens from {} distributions",
                                 draft.ids.size(), draft.drawn_from.size()));
  std::size_t count = 0;
  while (count < draft.ids.size() && static_cast<std::int64_t>(count) < most)
    if (!is_of_vocabulary(draft.ids[count++], vocabulary)) break;
  draft.ids.resize(count);
  if (!draft.drawn_from.empty()) draft.drawn_from.resize(count);
  return draft;
}

std::vector<std::int32_t> Continuation::fed_for(const TokenDraft& draft, std::int64_t vocabulary) const {
  std::vector<std::int32_t> ids{ids_.back()};
  ids.insert(ids.end(), draft.ids.begin(), draft.ids.end());
  // Nothing that follows a token that the model does not have is read.
  if (!is_of_vocabulary(ids.back(), vocabulary)) ids.back() = 0;
  return ids;
}

std::optional<TokenReport> Continuation::report(std::span<const float> logits, std::int32_t id) const {
  if (!options_.logprobs) return std::nullopt;
  return report_token(logits, id, static_cast<std::size_t>(*options_.logprobs));
}

void Continuation::draw_ahead(std::span<const float> logits) {
  Drawn drawn;
  try {
    drawn.id = sampler_.next(logits, context());
    drawn.report = report(logits, drawn.id);
  } catch (...) {
    drawn.failure = std::current_exception();
  }
  drawn_ = std::move(drawn);
}

ChosenToken Continuation::check(std::span<const float> logits, const TokenDraft& draft, std::size_t i) {
  if (std::optional<Drawn> drawn = std::exchange(drawn_, std::nullopt)) {
    if (drawn->failure) std::rethrow_exception(drawn->failure);
    ChosenToken token = add(drawn->id, draft, i, false);
    token.report = std::move(drawn->report);
    return token;
  }
  SamplingContext around = context();
  if (options_.constraint != nullptr) around.allowed = options_.constraint->allowed();
  std::int32_t id = 0;
  bool accepted = false;
  if (i >= draft.ids.size()) {
    id = sampler_.next(logits, around);
  } else {
    const std::vector<TokenProbability> p = sampler_.distribution(logits, around);
    const std::vector<TokenProbability> certain{{draft.ids[i], 1.0}};
    const std::vector<TokenProbability>& q = draft.drawn_from.empty() ? certain : draft.drawn_from[i];
    accepted = accepts(draft.ids[i], p, q, sampler_);
    id = accepted ? draft.ids[i] : draw_from(residual(p, q), sampler_);
    sampler_.chose(id, p);
  }
  if (options_.constraint != nullptr) options_.constraint->accept(id);
  ChosenToken token = add(id, draft, i, accepted);
  token.report = report(logits, id);
  return token;
}

void Continuation::forget(std::int64_t kept, std::int64_t count) {
  const auto first = static_cast<std::size_t>(kept);
  const auto end = first + static_cast<std::size_t>(count);
  ids_.erase(ids_.begin() + kept, ids_.begin() + kept + count);
  prompt_left_ -= std::min(end, prompt_left_) - std::min(first, prompt_left_);
}

ChosenToken Continuation::take(std::int32_t choice, const TokenDraft& draft, std::size_t i) {
  const std::int32_t id = checked_choice(choice);
  return add(id, draft, i, i < draft.ids.size() && draft.ids[i] == id);
}

ChosenToken Continuation::add(std::int32_t id, const TokenDraft& draft, std::size_t i, bool accepted) {
  if (i == 0) drafted_ += std::ssize(draft.ids);
  if (accepted) ++accepted_;
  ids_.push_back(id);
  ++generated_;
  ChosenToken token;
  token.id = id;
  token.accepted = accepted;
  token.decoded = text_.take(id);
  return token;
}

}  // namespace caldera
