// HeldCalls: holds calls of tools to their form from where one begins, in a text that is free otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lm/chat/thinking.h"
#include "lm/generate/grammar/grammar.h"
#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// Knows the tokens by what they have of the mark that opens calls. May be used from any thread.
class CallMarks {
 public:
  /// Keeps a reference. The model's tools have an opening mark.
  explicit CallMarks(const ServedModel& model) : model_(model), mark_(model.tools->open) {}

  const std::string& mark() const;
  std::string text_of(std::int32_t id) const;
  /// Tokens that may come where the text ends with the mark's first `pending` bytes: all but those that
  /// complete it and have more than blanks behind, as a call begins with a token of its own.
  const std::vector<std::uint64_t>& free_tokens(std::size_t pending);
  /// Whether all tokens of a set end a text.
  bool ends_alone(TokenSet set) const;
  /// Whether calls have a mark that closes them.
  bool closes() const { return !model_.tools->close.empty(); }

 private:
  const ServedModel& model_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<std::uint64_t>> free_;  // stay where they are
  std::string mark_;
};

class HeldCalls : public TokenConstraint {
 public:
  /// `calls`: what follows the mark. `thinking` sets apart what the model thinks, which has no calls.
  /// `several`: whether another call may follow.
  HeldCalls(std::shared_ptr<CallMarks> marks, std::shared_ptr<const Grammar> calls,
            std::optional<ThinkingSplitter> thinking, bool several)
      : marks_(std::move(marks)),
        calls_(std::move(calls)),
        thinking_(std::move(thinking)),
        several_(several) {}

  TokenSet allowed() override;
  void accept(std::int32_t id) override;
  std::unique_ptr<TokenConstraint> clone() const override;

 private:
  HeldCalls(const HeldCalls& other);
  void read(const std::string& text);
  std::size_t pending() const;

  std::shared_ptr<CallMarks> marks_;
  std::shared_ptr<const Grammar> calls_;
  std::optional<ThinkingSplitter> thinking_;
  bool several_;
  std::string tail_;                         // the text's end, as much as may be the mark's beginning
  std::unique_ptr<TokenConstraint> inside_;  // a call that has begun
};

}  // namespace caldera::serve
