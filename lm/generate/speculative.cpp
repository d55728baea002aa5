#include "lm/generate/speculative.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace caldera {
namespace {

double probability_of(std::int32_t id, std::span<const TokenProbability> distribution) {
  const auto found = std::find_if(distribution.begin(), distribution.end(),
                                  [&](const TokenProbability& token) { return token.id == id; });
  return found == distribution.end() ? 0 : found->probability;
}

/// Checks the draft's tokens in turn, after the first of what was fed. Returns false where the text stops.
bool check_draft(const Feeder& feeder, Sampler& sampler, Continuation& text, const TokenDraft& draft,
                 const GenerateOptions& options, Generation& result) {
  for (std::size_t i = 0;; ++i) {
    if (options.on_logits) options.on_logits(feeder.row(i));
    const std::vector<TokenProbability> p = sampler.distribution(feeder.row(i), text.context());
    if (i == draft.ids.size()) return text.add(draw_from(p, sampler));
    const std::int32_t guess = draft.ids[i];
    const std::vector<TokenProbability> certain{{guess, 1.0}};
    const std::vector<TokenProbability>& q = draft.drawn_from.empty() ? certain : draft.drawn_from[i];
    if (!(sampler.uniform() * probability_of(guess, q) < probability_of(guess, p)))
      return text.add(draw_from(residual(p, q), sampler));
    ++result.accepted_tokens;
    if (!text.add(guess)) return false;
  }
}

/// Leaves of a draft what can be checked: `most` tokens, up to the first that the model does not have (its
/// vocabulary may be smaller than the drafter's), which is refused. Throws ValueError where tokens and what
/// they were drawn from do not fit together.
void trim(TokenDraft& draft, std::int64_t most, std::size_t vocabulary) {
  if (!draft.drawn_from.empty() && draft.drawn_from.size() != draft.ids.size())
    throw ValueError(fmt::format("speculative decoding: the drafter gave {} tokens from {} distributions",
                                 draft.ids.size(), draft.drawn_from.size()));
  std::size_t count = 0;
  while (count < draft.ids.size() && static_cast<std::int64_t>(count) < most)
    if (const std::int32_t id = draft.ids[count++]; id < 0 || static_cast<std::size_t>(id) >= vocabulary)
      break;
  draft.ids.resize(count);
  if (!draft.drawn_from.empty()) draft.drawn_from.resize(count);
}

}  // namespace

std::int32_t draw_from(std::span<const TokenProbability> distribution, Sampler& sampler) {
  double total = 0;
  for (const TokenProbability& token : distribution) total += token.probability;
  double point = sampler.uniform() * total;
  for (const TokenProbability& token : distribution) {
    point -= token.probability;
    if (point < 0) return token.id;
  }
  return distribution.back().id;  // rounding left a remainder
}

std::vector<TokenProbability> residual(std::span<const TokenProbability> p,
                                       std::span<const TokenProbability> q) {
  std::unordered_map<std::int32_t, double> taken;
  for (const TokenProbability& token : q) taken[token.id] = token.probability;
  std::vector<TokenProbability> left;
  for (const TokenProbability& token : p) {
    const auto found = taken.find(token.id);
    const double rest = token.probability - (found == taken.end() ? 0 : found->second);
    if (rest > 0) left.push_back({token.id, rest});
  }
  if (left.empty()) left.assign(p.begin(), p.end());
  return left;
}

void generate_with_drafts(Feeder& feeder, Sampler& sampler, Continuation& text, std::int64_t limit,
                          const GenerateOptions& options, Generation& result) {
  if (!text.add(sampler.next(feeder.logits(), text.context()))) return;
  while (text.left() > 0 && feeder.position() < limit) {
    // What is checked may be kept whole, with one token more.
    const std::int64_t wanted = std::min(
        {options.draft_tokens, text.left() - 1, limit - feeder.position() - 1, feeder.most_drafts()});
    TokenDraft draft;
    // One length, so that there is one plan.
    if (wanted > 0 && feeder.make_room(options.draft_tokens + 1))
      draft = options.drafter->propose(text.context(), wanted);
    const std::size_t vocabulary = feeder.vocabulary();
    trim(draft, wanted, vocabulary);
    if (draft.ids.empty()) {
      feeder.feed_token(text.ids().back());
      if (!text.add(sampler.next(feeder.logits(), text.context()))) return;
      continue;
    }
    result.drafted_tokens += static_cast<std::int64_t>(draft.ids.size());
    std::vector<std::int32_t> ids{text.ids().back()};
    ids.insert(ids.end(), draft.ids.begin(), draft.ids.end());
    // The token that the model does not have: nothing that follows it is read.
    if (ids.back() < 0 || static_cast<std::size_t>(ids.back()) >= vocabulary) ids.back() = 0;
    feeder.feed_drafts(ids, options.draft_tokens + 1);
    const bool go_on = check_draft(feeder, sampler, text, draft, options, result);
    feeder.truncate(text.size() - 1);  // the token that was added last is not fed
    if (!go_on) return;
  }
}

}  // namespace caldera
