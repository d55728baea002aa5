#include "lm/serve/service/held_calls.h"

#include <algorithm>
#include <utility>

namespace caldera::serve {
namespace {

constexpr std::string_view kCallBlanks = " \t\r\n";

std::uint64_t word_bit(std::size_t id) { return std::uint64_t{1} << (id % 64); }

}  // namespace

const std::string& CallMarks::mark() const { return mark_; }

// Special tokens are how some models write the mark.
std::string CallMarks::text_of(std::int32_t id) const {
  const Tokenizer& tokenizer = *model_.tokenizer;
  return tokenizer.is_special(id) ? tokenizer.decode({&id, 1}, false) : tokenizer.token_bytes(id);
}

const std::vector<std::uint64_t>& CallMarks::free_tokens(std::size_t pending) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = free_.try_emplace(pending);
  std::vector<std::uint64_t>& set = found->second;
  if (!is_new) return set;
  const auto size = static_cast<std::size_t>(model_.tokenizer->vocab_size());
  set.resize((size + 63) / 64);
  for (std::size_t id = 0; id < size; ++id) {
    const std::string text = mark_.substr(0, pending) + text_of(static_cast<std::int32_t>(id));
    const std::size_t at = text.find(mark_);
    const bool crosses = at != std::string::npos &&
                         text.find_first_not_of(kCallBlanks, at + mark_.size()) != std::string::npos;
    if (!crosses) set[id / 64] |= word_bit(id);
  }
  return set;
}

bool CallMarks::ends_alone(TokenSet set) const {
  std::vector<std::uint64_t> others(set.begin(), set.end());
  for (const std::int32_t end : model_.stop_ids) {
    const auto id = static_cast<std::size_t>(end);
    if (end >= 0 && id / 64 < others.size()) others[id / 64] &= ~word_bit(id);
  }
  return std::ranges::all_of(others, [](std::uint64_t word) { return word == 0; });
}

HeldCalls::HeldCalls(const HeldCalls& other)
    : TokenConstraint(other),
      marks_(other.marks_),
      calls_(other.calls_),
      thinking_(other.thinking_),
      several_(other.several_),
      tail_(other.tail_),
      inside_(other.inside_ == nullptr ? nullptr : other.inside_->clone()) {}

TokenSet HeldCalls::allowed() {
  if (inside_ != nullptr) return inside_->allowed();
  return marks_->free_tokens(pending());
}

std::size_t HeldCalls::pending() const {
  std::size_t size = std::min(tail_.size(), marks_->mark().size() - 1);
  while (size > 0 &&
         !std::string_view(marks_->mark()).starts_with(std::string_view(tail_).substr(tail_.size() - size)))
    --size;
  return size;
}

void HeldCalls::accept(std::int32_t id) {
  if (inside_ == nullptr) {
    const std::string text = marks_->text_of(id);
    if (!thinking_) return read(text);
    for (const ThinkingPart& part : thinking_->push(text)) {
      if (part.thinking)
        tail_.clear();
      else
        read(part.text);
    }
    return;
  }
  inside_->accept(id);
  // Behind its closing mark the text is free again; where there is none, a call ends with the text.
  if (several_ && marks_->closes() && marks_->ends_alone(inside_->allowed())) inside_.reset();
}

void HeldCalls::read(const std::string& text) {
  if (inside_ != nullptr) return;
  tail_ += text;
  if (tail_.find(marks_->mark()) != std::string::npos) {
    tail_.clear();
    inside_ = calls_->constraint();
    return;
  }
  tail_.erase(0, tail_.size() - pending());
}

std::unique_ptr<TokenConstraint> HeldCalls::clone() const {
  return std::unique_ptr<TokenConstraint>(new HeldCalls(*this));
}

}  // namespace caldera::serve
