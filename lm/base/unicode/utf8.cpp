#include "lm/base/unicode/utf8.h"

#include <algorithm>

namespace caldera::detail {
namespace {

struct Scan {
  std::size_t length = 0;  ///< bytes that belong together
  std::size_t needed = 0;  ///< bytes a whole character would have; 0 if no character begins like this
};

/// Table 3-7 of the Unicode standard: the first byte gives the length and the range of the second.
Scan scan(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, 1};
  std::size_t needed = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    needed = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    needed = 3;
    if (first == 0xE0) low = 0xA0;   // overlong
    if (first == 0xED) high = 0x9F;  // surrogates
  } else if (first >= 0xF0 && first <= 0xF4) {
    needed = 4;
    if (first == 0xF0) low = 0x90;   // overlong
    if (first == 0xF4) high = 0x8F;  // above U+10FFFF
  } else {
    return {1, 0};
  }
  std::size_t length = 1;
  while (length < needed && length < text.size() && byte(length) >= low && byte(length) <= high) {
    ++length;
    low = 0x80;
    high = 0xBF;
  }
  return {length, needed};
}

}  // namespace

std::size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const Scan s = scan(text);
  return s.length == s.needed ? s.length : 0;
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
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Scan s = scan(text);
    out += s.length == s.needed ? text.substr(0, s.length) : kReplacementCharacter;
    text.remove_prefix(s.length);
  }
  return out;
}

std::size_t incomplete_tail(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto tail = text.substr(text.size() - back);
    if ((static_cast<unsigned char>(tail.front()) & 0xC0) == 0x80)
      continue;  // a continuation byte: look further
    const Scan s = scan(tail);
    return s.length == back && s.needed > back ? back : 0;
  }
  return 0;
}

}  // namespace caldera::detail
