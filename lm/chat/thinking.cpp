#include "lm/chat/thinking.h"

#include <algorithm>
#include <array>

namespace caldera {
namespace {

struct Marks {
  std::string_view open;
  std::string_view close;
  bool anywhere = false;  // special tokens: no text holds them by chance
};

// As the models' chat templates and documentation write them.
constexpr std::array kMarks{
    Marks{"<think>", "</think>"},
    Marks{"<thinking>", "</thinking>"},
    Marks{"<reasoning>", "</reasoning>"},
    Marks{"<seed:think>", "</seed:think>"},
    Marks{"[THINK]", "[/THINK]"},
    Marks{"<|START_THINKING|>", "<|END_THINKING|>", true},
    Marks{"<|channel|>analysis<|message|>", "<|end|>", true},
    Marks{"<|channel|>commentary<|message|>", "<|end|>", true},
};

// Stand around answers and are no part of them: gpt-oss begins its answer with the first two.
constexpr std::array<std::string_view, 4> kFrames{"<|start|>assistant", "<|channel|>final<|message|>",
                                                  "<|START_RESPONSE|>", "<|END_RESPONSE|>"};

constexpr std::string_view kBlank = " \t\r\n";

/// Where in `text` the mark stands, or where its beginning may stand at the end of `text`; npos for neither.
std::size_t find_mark(std::string_view text, std::string_view mark) {
  for (std::size_t at = text.find(mark.front()); at != text.npos; at = text.find(mark.front(), at + 1)) {
    const std::string_view rest = text.substr(at, mark.size());
    if (mark.starts_with(rest)) return at;
  }
  return text.npos;
}

}  // namespace

ThinkingSplitter::ThinkingSplitter(std::string_view prompt) {
  std::size_t last = 0;
  for (const Marks& marks : kMarks) {
    const std::size_t open = prompt.rfind(marks.open);
    if (open == prompt.npos || open < last) continue;
    // Only what the template put at the very end is open: an earlier one belongs to the conversation.
    const std::string_view behind = prompt.substr(open + marks.open.size());
    if (behind.find_first_not_of(kBlank) != behind.npos) continue;
    last = open;
    thinking_ = true;
    skip_blank_ = true;
    close_ = marks.close;
  }
}

bool ThinkingSplitter::reads(std::string_view token) {
  const auto has = [token](std::string_view mark) { return mark.find(token) != mark.npos; };
  return !token.empty() &&
         (std::ranges::any_of(kMarks,
                              [&](const Marks& marks) { return has(marks.open) || has(marks.close); }) ||
          std::ranges::any_of(kFrames, has));
}

ThinkingSplitter::Found ThinkingSplitter::next_mark() const {
  Found best{held_.size(), {}, {}};
  const auto look_for = [&](std::string_view mark, std::string_view close, bool anywhere) {
    const std::size_t at = find_mark(held_, mark);
    if (at == held_.npos) return;
    if (!anywhere && (answered_ || held_.find_first_not_of(kBlank) != at)) return;
    // Of two that begin at one place the one that is there in full counts.
    if (at < best.at || (at == best.at && held_.compare(at, mark.size(), mark) == 0))
      best = {at, mark, close};
  };
  if (thinking_) {
    look_for(close_, {}, true);
  } else {
    for (const Marks& marks : kMarks) look_for(marks.open, marks.close, marks.anywhere);
    for (const std::string_view frame : kFrames) look_for(frame, {}, true);
  }
  return best;
}

void ThinkingSplitter::take(std::vector<ThinkingPart>& parts, std::size_t count) {
  std::string_view text = std::string_view(held_).substr(0, count);
  if (skip_blank_) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    skip_blank_ = text.empty();
  }
  if (!text.empty()) {
    if (!parts.empty() && parts.back().thinking == thinking_)
      parts.back().text += text;
    else
      parts.push_back({thinking_, std::string(text)});
    answered_ = answered_ || !thinking_;
  }
  held_.erase(0, count);
}

std::vector<ThinkingPart> ThinkingSplitter::push(std::string_view piece) {
  held_ += piece;
  std::vector<ThinkingPart> parts;
  while (true) {
    const Found found = next_mark();
    // Blanks at the end of thinking, and those before anything else, wait for a mark that swallows them.
    std::size_t end = found.at;
    if (thinking_ || !answered_)
      while (end > 0 && kBlank.find(held_[end - 1]) != kBlank.npos) --end;
    const std::size_t blank = found.at - end;
    take(parts, end);
    if (found.mark.empty() || held_.size() < blank + found.mark.size()) return parts;
    held_.erase(0, blank + found.mark.size());
    thinking_ = !found.close.empty();
    close_ = found.close;
    skip_blank_ = true;
  }
}

std::vector<ThinkingPart> ThinkingSplitter::finish() {
  std::vector<ThinkingPart> parts;
  take(parts, held_.size());
  return parts;
}

}  // namespace caldera
