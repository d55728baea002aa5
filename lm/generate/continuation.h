// Continuation: one sequence that is being continued, and how its next token is chosen. generate() has one,
// a BatchGenerator one for each request: what they share is here, what they feed to the model is theirs.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lm/generate/decoding_options.h"
#include "lm/generate/sampling/log_probabilities.h"
#include "lm/generate/sampling/sampler.h"
#include "lm/generate/text_decoder.h"

namespace caldera {

/// A token that was chosen, and what it adds to its sequence.
struct ChosenToken {
  std::int32_t id = 0;
  std::optional<TokenReport> report;  ///< where log-probabilities are asked for
  DecodedToken decoded;
  bool accepted = false;  ///< the token is that of the draft, so what was fed behind it holds
};

/// Not for several threads at once.
class Continuation {
 public:
  /// Keeps a reference to `options`. `positions` bounds the tokens that are fed: prompt and continuation
  /// without the last token. Throws ValueError for sampling options out of their domains.
  Continuation(std::span<const std::int32_t> prompt, const DecodingOptions& options, std::int64_t positions);

  /// The prompt and what was chosen, without what was forgotten.
  std::span<const std::int32_t> ids() const { return ids_; }
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int64_t prompt_size() const { return static_cast<std::int64_t>(prompt_size_); }
  /// Counts what ids() has of the prompt.
  std::int64_t prompt_left() const { return static_cast<std::int64_t>(prompt_left_); }
  std::int64_t generated() const { return generated_; }
  /// Tokens that may still be chosen.
  std::int64_t left() const { return text_.left(); }

  /// Asks the drafter for at most `most` tokens, no more than the sequence may have. Of what it gives, those
  /// up to the first that no model of this vocabulary has are kept: that one is refused by check(). Throws
  /// ValueError where tokens and what they were drawn from do not fit together, and what the drafter throws.
  TokenDraft draft(std::int64_t most, std::int64_t vocabulary);
  /// Writes what is fed to check a draft: the last token and the draft's.
  std::vector<std::int32_t> fed_for(const TokenDraft& draft, std::int64_t vocabulary) const;

  /// Chooses the next token of the logits after the sequence's last one. Throws what sampling, the constraint
  /// and the tokenizer throw.
  ChosenToken draw(std::span<const float> logits) { return check(logits, {}, 0); }
  /// Chooses the next token, where `draft` guesses that it is ids[i] and its ids before i were accepted. A
  /// guess x that was drawn from q is accepted with probability min(1, p(x) / q(x)), where p is what the
  /// sampler would draw from where the constraint is now; the token in place of one that is not accepted is
  /// drawn from max(0, p - q), normalised (Leviathan et al. 2023, Chen et al. 2023). So every token is drawn
  /// from p, whatever the draft is, and one that the constraint forbids is never accepted. Behind the draft's
  /// end the token is drawn from p.
  ChosenToken check(std::span<const float> logits, const TokenDraft& draft, std::size_t i);
  /// Whether draw_ahead() may be called: what is drawn depends on this sequence and the logits alone.
  bool draws_alone() const { return options_.constraint == nullptr; }
  /// Draws what the next call of check() for the same logits, without a draft, chooses: that may be done for
  /// several sequences side by side. What it throws, that call throws.
  void draw_ahead(std::span<const float> logits);
  /// Takes the token that the device has chosen, with takes_choices() of the options: as check() does.
  ChosenToken take(std::int32_t choice, const TokenDraft& draft = {}, std::size_t i = 0);

  /// Forgets `count` tokens behind the first `kept`.
  void forget(std::int64_t kept, std::int64_t count);

  /// Returns the text that is held back, where the sequence ends without a last token.
  std::string rest() { return text_.rest(); }
  /// Tokens of the drafts that were checked, those behind a token that was not accepted included.
  std::int64_t drafted_tokens() const { return drafted_; }
  std::int64_t accepted_tokens() const { return accepted_; }

 private:
  /// A token that was drawn before check() asks for it.
  struct Drawn {
    std::int32_t id = 0;
    std::optional<TokenReport> report;
    std::exception_ptr failure;
  };

  SamplingContext context() const;
  std::optional<TokenReport> report(std::span<const float> logits, std::int32_t id) const;
  ChosenToken add(std::int32_t id, const TokenDraft& draft, std::size_t i, bool accepted);

  const DecodingOptions& options_;
  Sampler sampler_;
  std::vector<std::int32_t> ids_;
  std::size_t prompt_size_;
  std::size_t prompt_left_;
  std::int64_t generated_ = 0;
  TextDecoder text_;
  std::int64_t drafted_ = 0;
  std::int64_t accepted_ = 0;
  std::optional<Drawn> drawn_;
};

}  // namespace caldera
