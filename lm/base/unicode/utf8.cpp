#include "lm/base/unicode/utf8.h"

#include <algorithm>

namespace caldera::detail {

Character last_character(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(U8_MAX_LENGTH, text.size()); ++n) {
    const Character c = first_character(text.substr(text.size() - n));
    if (c.valid && c.bytes == n) return c;
  }
  return first_character(text.substr(text.size() - std::min<std::size_t>(1, text.size())));
}

void append_character(std::string& text, char32_t c) {
  std::uint8_t bytes[U8_MAX_LENGTH];
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, c);
  text.append(bytes, bytes + size);
}

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::size_t utf8_character(std::string_view text) {
  const Character c = first_character(text);
  return c.valid ? c.bytes : 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    UChar32 value = 0;
    U8_NEXT(bytes, at, text.size(), value);
    out += value < 0 ? kReplacementCharacter : text.substr(begin, at - begin);
  }
  return out;
}

std::size_t incomplete_tail(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::size_t end = text.size();
  U8_TRUNCATE_IF_INCOMPLETE(bytes, 0, end);
  return text.size() - end;
}

}  // namespace caldera::detail
