// AfterMark: a constraint of the text behind a mark, such as the one that ends a model's thinking.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lm/generate/sampling/token_constraint.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::serve {

/// Before the mark every token may come but those that end the text, and those that have the mark's end and
/// more than blanks behind it: what follows must begin with a token of its own.
class AfterMark : public TokenConstraint {
 public:
  /// The tokenizer must outlive this.
  AfterMark(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ends, std::string mark,
            std::shared_ptr<TokenConstraint> then);

  TokenSet allowed() override;
  void accept(std::int32_t id) override;
  std::unique_ptr<TokenConstraint> clone() const override;

 private:
  AfterMark(const AfterMark&) = default;
  std::string text_of(std::int32_t id) const;
  bool crosses(const std::string& text) const;

  const Tokenizer* tokenizer_;
  std::string mark_;
  std::shared_ptr<TokenConstraint> then_;
  std::vector<std::uint64_t> free_;  // what may come before the mark
  std::vector<std::uint64_t> now_;   // the same without what crosses it
  std::string tail_;                 // the text's end, as much as may be the mark's beginning
  bool behind_ = false;
};

}  // namespace caldera::serve
