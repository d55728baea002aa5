#include "lm/chat/tools/tool_call_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace caldera {
namespace {

constexpr std::string_view kBetweenCalls = " \t\r\n,;]}";
constexpr std::size_t kMostHead = 4096;

/// Reads a head from left to right; where the text ends too early, `waits`.
struct HeadReader {
  std::string_view text;
  std::size_t at = 0;
  bool waits = false;

  void skip_blanks() { at = std::min(text.find_first_not_of(kToolBlanks, at), text.size()); }
  bool take(std::string_view what) {
    skip_blanks();
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(what)) {
      at += what.size();
      return true;
    }
    waits = what.starts_with(rest);
    return false;
  }
  /// A string of JSON.
  std::optional<std::string> take_string() {
    skip_blanks();
    if (at == text.size()) waits = true;
    if (at == text.size() || text[at] != '"') return std::nullopt;
    for (std::size_t end = at + 1; end < text.size(); ++end) {
      if (text[end] == '\\') {
        ++end;
      } else if (text[end] == '"') {
        const auto value = nlohmann::json::parse(text.substr(at, end + 1 - at), nullptr, false);
        at = end + 1;
        return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
      }
    }
    waits = true;
    return std::nullopt;
  }
};

}  // namespace

void ToolCallStream::restart() { *this = ToolCallStream(format_); }

std::vector<ToolCallPiece> ToolCallStream::read(std::string_view text) {
  std::vector<ToolCallPiece> pieces;
  while (state_ == State::arguments ? read_arguments(text, pieces) : read_head(text, pieces)) {
  }
  return pieces;
}

// Returns whether arguments have begun.
bool ToolCallStream::read_head(std::string_view text, std::vector<ToolCallPiece>& pieces) {
  if (state_ == State::lost) return false;
  std::size_t begin = at_;
  for (;;) {
    begin = std::min(text.find_first_not_of(kBetweenCalls, begin), text.size());
    // The mark may stand between calls, too, and begin as a list does.
    const std::string_view rest = text.substr(begin);
    if (!rest.empty() && rest.size() < format_.open.size() && format_.open.starts_with(rest)) return false;
    if (!format_.open.empty() && rest.starts_with(format_.open))
      begin += format_.open.size();
    else if (rest.starts_with('['))
      ++begin;
    else
      break;
  }
  HeadReader head{text, begin};
  std::optional<std::string> name;
  head.skip_blanks();
  if (head.at == text.size()) return false;
  const bool is_object = text[head.at] == '{';
  bool found = false;
  if (is_object) {
    if (head.take("{") && head.take("\"name\"") && head.take(":") && (name = head.take_string()) &&
        head.take(",") && head.take(std::string("\"") + std::string(format_.arguments) + "\""))
      found = head.take(":");
    head.skip_blanks();
    if (found && head.at == text.size()) return false;
  } else if (format_.payload == "named") {
    const std::size_t end = text.find_first_of("[{", head.at);
    if (end == std::string_view::npos) return false;
    name = std::string(text.substr(head.at, end - head.at));
    while (!name->empty() && kToolBlanks.find(name->back()) != std::string_view::npos) name->pop_back();
    head.at = end;
    if (text[end] == '{' || head.take("[ARGS]")) found = !name->empty();
    head.skip_blanks();
    if (found && head.at == text.size()) return false;
  } else if (format_.payload == "channel") {
    constexpr std::string_view kMessage = "<|message|>";
    const std::size_t message = text.find(kMessage, head.at);
    if (message == std::string_view::npos) return false;
    name = std::string(text.substr(head.at, text.find_first_of(" <", head.at) - head.at));
    head.at = message + kMessage.size();
    head.skip_blanks();
    found = !name->empty();
    if (found && head.at == text.size()) return false;
  }
  if (!found || text[head.at] != '{') {
    // What may still become one is waited for.
    if (!head.waits || text.size() - begin > kMostHead) state_ = State::lost;
    return false;
  }
  at_ = head.at;
  state_ = State::arguments;
  depth_ = 0;
  in_text_ = escaped_ = false;
  ++begun_;
  pieces.push_back({true, *name, {}});
  return true;
}

// Returns whether the arguments have ended.
bool ToolCallStream::read_arguments(std::string_view text, std::vector<ToolCallPiece>& pieces) {
  const std::size_t begin = at_;
  bool ended = false;
  for (; at_ < text.size() && !ended; ++at_) {
    const char c = text[at_];
    if (escaped_) {
      escaped_ = false;
    } else if (in_text_) {
      escaped_ = c == '\\';
      in_text_ = c != '"';
    } else if (c == '"') {
      in_text_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      ended = --depth_ == 0;
    }
  }
  if (at_ > begin) pieces.push_back({false, {}, std::string(text.substr(begin, at_ - begin))});
  if (ended) state_ = State::head;
  return ended;
}

}  // namespace caldera
