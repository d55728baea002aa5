#include "lm/chat/tools/tool_call_parser.h"

#include <algorithm>

namespace caldera {
namespace {

// May stand before calls that have no opening mark.
constexpr std::string_view kTag = "<|python_tag|>";

// How many bytes at the end of `text` may be the beginning of `mark`.
std::size_t pending(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (std::size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n)
    if (mark.starts_with(text.substr(text.size() - n))) return n;
  return 0;
}

}  // namespace

ToolCallParser::Output ToolCallParser::push(std::string_view text) {
  held_ += text;
  Output output;
  read(output, false);
  return output;
}

ToolCallParser::Output ToolCallParser::finish() {
  Output output;
  read(output, true);
  return output;
}

void ToolCallParser::read(Output& output, bool at_end) {
  while (inside_ ? read_inside(output, at_end) : read_outside(output, at_end)) {
  }
}

// Returns whether there is more to read: calls have begun.
bool ToolCallParser::read_outside(Output& output, bool at_end) {
  if (format_.open.empty()) {
    if (!decided_) {
      const std::size_t begin = held_.find_first_not_of(kToolBlanks);
      if (begin != std::string::npos) {
        const std::string_view rest = std::string_view(held_).substr(begin);
        if (!at_end && rest.size() < kTag.size() && kTag.starts_with(rest)) return false;
        decided_ = true;
        const std::size_t tag = rest.starts_with(kTag) ? kTag.size() : 0;
        if (tag > 0 || rest.front() == '{') {
          inside_ = true;
          held_.erase(0, begin + tag);
          return true;
        }
      }
      if (!decided_ && !at_end) return false;
    }
    output.content += held_;
    held_.clear();
    return false;
  }
  std::size_t open = held_.find(format_.open);
  const bool found = open != std::string::npos;
  opened_ = format_.open;
  if (!format_.longer_open.empty())
    if (const std::size_t longer = held_.find(format_.longer_open); longer < open) {
      open = longer;
      opened_ = format_.longer_open;
    }
  std::size_t shown = found ? open : held_.size();
  if (!found && !at_end) shown -= std::max(pending(held_, format_.open), pending(held_, format_.longer_open));
  // Blanks before a call are no content; before the end they are, unless there were calls.
  std::string_view text = std::string_view(held_).substr(0, shown);
  const std::size_t kept = text.find_last_not_of(kToolBlanks) + 1;
  if (found || !at_end || has_calls()) text = text.substr(0, kept);
  if (has_calls() && output.content.empty() && kept == 0) text = {};
  output.content += text;
  if (found) {
    held_.erase(0, open + opened_.size());
    inside_ = true;
    searched_ = 0;
    return true;
  }
  held_.erase(0, at_end ? held_.size() : text.size());
  return false;
}

/// Adds calls that are complete; the first of them have been told piece by piece.
void ToolCallParser::add_calls(const std::vector<ToolCall>& calls, Output& output) {
  found_ += calls.size();
  const std::size_t told = stream_ ? stream_->begun() : 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    output.calls.push_back(calls[i]);
    output.told.push_back(i < told);
  }
  if (stream_) stream_->restart();
}

// Returns whether there is more to read: the calls have ended.
bool ToolCallParser::read_inside(Output& output, bool at_end) {
  if (stream_) {
    // Pieces of what follows the closing mark are not read: that is looked for below, and what is held is cut
    // there.
    for (ToolCallPiece& piece : stream_->read(held_)) output.pieces.push_back(std::move(piece));
  }
  const bool to_the_end = format_.close.empty();
  while (!to_the_end) {
    const std::size_t close = held_.find(format_.close, searched_);
    if (close == std::string::npos) {
      searched_ = held_.size() - pending(held_, format_.close);
      break;
    }
    std::vector<ToolCall> calls = parse_tool_calls(std::string_view(held_).substr(0, close), format_);
    searched_ = close + format_.close.size();
    if (calls.empty()) continue;  // the mark stands within a string, perhaps
    add_calls(calls, output);
    held_.erase(0, searched_);
    searched_ = 0;
    inside_ = false;
    return true;
  }
  if (!at_end) return false;
  std::vector<ToolCall> calls = parse_tool_calls(held_, format_);
  const bool was_told = stream_ && stream_->begun() > 0;
  if (calls.empty() && !was_told) output.content += std::string(opened_) + held_;
  add_calls(calls, output);
  held_.clear();
  inside_ = false;
  return false;
}

}  // namespace caldera
