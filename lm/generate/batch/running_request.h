// A request in the batch, or on its way there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lm/generate/batch/batch_request.h"
#include "lm/generate/cache/paged_forward.h"
#include "lm/generate/continuation.h"
#include "lm/generate/text_frequencies.h"

namespace caldera {

/// An adapter as requests use it. `kind` tells its texts apart from those of others, and of an earlier one of
/// the same name.
struct NamedAdapter {
  AdapterBank::AdapterPtr adapter;  // null: the model itself
  std::string kind;
  std::string identity;  ///< of its files, where texts are kept in files
};

class RunningRequest {
 public:
  /// Keeps a reference to `frequencies`. `context`: positions of a request. Throws ValueError for sampling
  /// options out of their domains.
  RunningRequest(RequestId id, GenerateRequest request, NamedAdapter adapter,
                 const TextFrequencies& frequencies, std::int64_t context);

  RequestId id() const { return id_; }
  const GenerateRequest& request() const { return request_; }
  std::int64_t generated() const { return sequence_.generated(); }
  /// Tokens whose keys and values are not computed yet, a draft's not counted.
  std::int64_t waiting() const { return sequence_.size() - fed_; }

  /// Takes a beginning from the store; before the first, and after every leave().
  void join(PageStore& store);
  void leave(PageStore& store);
  /// Takes what other texts have written of its next tokens since.
  void catch_up(PageStore& store);
  /// Leaves and joins again where its keys do not fit the text's length any more (see TextFrequencies).
  void outgrow(PageStore& store);
  /// Forgets the first half of what stands behind the tokens that are to stay, leaves, and joins again, where
  /// the text has no room for its last token in `context` positions. False where that is not so.
  bool shift(PageStore& store, std::int64_t context);
  /// Says that what join() or catch_up() found is used. Returns the tokens of the prompt that are not
  /// computed for it.
  std::int64_t settle_reused();
  /// The text so far, how much of it is computed, and its pages.
  std::span<const std::int32_t> ids() const { return sequence_.ids(); }
  std::int64_t fed() const { return fed_; }
  const PageStore::Text& text() const { return text_; }
  /// Tells apart texts whose keys differ for equal ids, also between two runs of a program.
  std::string saved_kind() const { return adapter_.identity + "|" + frequencies_.kind(text_length_); }
  /// Whether the beginning may be in files still: until that was looked for in vain.
  bool looks_for_saved() const { return looks_for_saved_; }
  void found_nothing_saved() { looks_for_saved_ = false; }
  /// Says that the first `end` tokens are written, as they were found in files.
  void restored(PageStore& store, std::int64_t end);
  /// Pages that its tokens so far will still need, and up to `growth` tokens behind them.
  std::int64_t pages_due(const PageStore& store, std::int64_t growth) const;
  /// Whether it gave its pages up before.
  bool was_preempted() const { return preempted_; }
  void preempt(PageStore& store);
  /// Whether what the model says of the prompt is told as well.
  bool scores_prompt() const { return request_.prompt_logprobs.has_value(); }
  /// Takes the logits after the next `count` tokens, a row each, before feed().
  void score(std::span<const float> logits, std::int64_t count);
  /// Makes room for the next `count` tokens. False where there are not enough pages.
  bool reserve(PageStore& store, std::int64_t count) { return store.reserve(text_, fed_ + count); }
  /// Asks the drafter what follows the one token that waits, for at most `most` tokens; the draft is fed
  /// together with that token, unless there are no pages for it. Throws what the drafter throws.
  void propose(PageStore& store, std::int64_t most, std::int64_t vocabulary);
  const TokenDraft& draft() const { return draft_; }
  /// The next `count` tokens, and the draft behind them.
  PagedRow row(std::int64_t count) const;
  /// Says that the next `count` tokens are computed, and returns which of them never were before.
  struct Fed {
    std::int64_t of_prompt = 0;
    std::int64_t again = 0;  ///< computed before, and given up
  };
  Fed feed(PageStore& store, std::int64_t count);

  /// Whether its next token may be drawn while those of others are, and draws it (Continuation::draw_ahead).
  bool draws_alone() const { return draft_.ids.empty() && sequence_.draws_alone(); }
  void draw_ahead(std::span<const float> logits) { sequence_.draw_ahead(logits); }
  /// Chooses the next token: of the logits, or as the device chose it, behind i tokens of the draft.
  /// `accepted`: the token is the draft's next. Throws what sampling, the constraint and the tokenizer throw.
  TokenEvent check(std::span<const float> logits, std::size_t i, bool& accepted);
  TokenEvent take(std::int32_t choice, std::size_t i, bool& accepted);
  /// Forgets a draft that was checked, or is not to be.
  void drop_draft();
  /// An event without a token.
  TokenEvent ended(FinishReason reason, std::string error = {});
  /// Hands an event to the receiver. False where the request is to end.
  bool tell(const TokenEvent& event) const;

 private:
  TokenEvent event();
  TokenEvent chosen(ChosenToken token);

  RequestId id_;
  GenerateRequest request_;
  NamedAdapter adapter_;
  Continuation sequence_;
  const TextFrequencies& frequencies_;
  PageStore::Text text_;
  std::int64_t text_length_ = 0;  // see TextFrequencies
  std::int64_t fed_ = 0;
  std::int64_t settled_ = 0;  // the first tokens, which were computed or found once
  std::int64_t reused_ = 0;   // of the prompt
  bool preempted_ = false;
  bool looks_for_saved_ = true;
  std::vector<TokenReport> prompt_reports_;  // of the prompt's second token and later ones
  std::int64_t scored_ = 0;                  // of them, those that were told among them
  TokenDraft draft_;
  std::vector<std::int32_t> fed_ids_;  // the token that waits and the draft
};

}  // namespace caldera
