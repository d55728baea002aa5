#include "lm/serve/service/after_mark.h"

#include <algorithm>

#include "engine/base/error.h"

namespace caldera::serve {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::uint64_t bit(std::size_t id) { return std::uint64_t{1} << (id % 64); }

}  // namespace

AfterMark::AfterMark(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ends, std::string mark,
                     std::shared_ptr<TokenConstraint> then)
    : tokenizer_(&tokenizer), mark_(std::move(mark)), then_(std::move(then)) {
  const auto size = static_cast<std::size_t>(tokenizer.vocab_size());
  free_.resize((size + 63) / 64);
  for (std::size_t id = 0; id < size; ++id) free_[id / 64] |= bit(id);
  for (const std::int32_t end : ends) {
    const auto id = static_cast<std::size_t>(end);
    if (end >= 0 && id < size) free_[id / 64] &= ~bit(id);
  }
}

// Special tokens are how some models write the mark.
std::string AfterMark::text_of(std::int32_t id) const {
  return tokenizer_->is_special(id) ? tokenizer_->decode({&id, 1}, false) : tokenizer_->token_bytes(id);
}

bool AfterMark::crosses(const std::string& text) const {
  const std::size_t at = text.find(mark_);
  return at != std::string::npos && text.find_first_not_of(kBlanks, at + mark_.size()) != std::string::npos;
}

TokenSet AfterMark::allowed() {
  if (behind_) return then_->allowed();
  // Only where the mark may have begun can a token end it; looking through the vocabulary takes a while.
  if (tail_.empty()) return free_;
  now_ = free_;
  const auto size = static_cast<std::size_t>(tokenizer_->vocab_size());
  for (std::size_t id = 0; id < size; ++id)
    if (crosses(tail_ + text_of(static_cast<std::int32_t>(id)))) now_[id / 64] &= ~bit(id);
  return now_;
}

void AfterMark::accept(std::int32_t id) {
  if (behind_) return then_->accept(id);
  const std::string text = tail_ + text_of(id);
  if (!contains(free_, id) || (!tail_.empty() && crosses(text)))
    throw ValueError("the token is not allowed here");
  behind_ = text.find(mark_) != std::string::npos;
  std::size_t kept = std::min(text.size(), mark_.size() - 1);
  while (kept > 0 && !std::string_view(mark_).starts_with(std::string_view(text).substr(text.size() - kept)))
    --kept;
  tail_ = text.substr(text.size() - kept);
}

std::unique_ptr<TokenConstraint> AfterMark::clone() const {
  std::unique_ptr<AfterMark> copy(new AfterMark(*this));
  copy->then_ = then_->clone();
  return copy;
}

}  // namespace caldera::serve
