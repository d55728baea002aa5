#include "lm/chat/template/base/string_literal.h"

#include <algorithm>

#include "lm/chat/template/base/budget.h"
#include "lm/chat/template/base/unicode.h"

namespace caldera::chat {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// Reads `count` hexadecimal digits behind the letter of an escape.
char32_t hex(std::string_view& rest, std::size_t count) {
  char32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int digit = i < rest.size() ? hex_digit(rest[i]) : -1;
    if (digit < 0) fail("a string has an escape that is cut off: it needs {} hexadecimal digits", count);
    value = value * 16 + static_cast<char32_t>(digit);
  }
  rest.remove_prefix(count);
  return value;
}

char32_t octal(std::string_view& rest) {
  char32_t value = 0;
  for (int i = 0; i < 3 && !rest.empty() && rest[0] >= '0' && rest[0] <= '7'; ++i) {
    value = value * 8 + static_cast<char32_t>(rest[0] - '0');
    rest.remove_prefix(1);
  }
  return value;
}

char32_t named(std::string_view& rest) {
  const std::size_t close = rest.find('}');
  if (rest.empty() || rest[0] != '{' || close == std::string_view::npos)
    fail("malformed \\N character escape");
  const char32_t c = character_named(std::string(rest.substr(1, close - 1)));
  if (c == 0) fail("unknown Unicode character name");
  rest.remove_prefix(close + 1);
  return c;
}

/// What follows a backslash; `rest` begins with it.
void escape_character(std::string_view& rest, std::string& out) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char c = rest[0];
  if (const std::size_t i = kLetters.find(c); i != std::string_view::npos) {
    out.push_back(kMeanings[i]);
    rest.remove_prefix(1);
    return;
  }
  char32_t value = 0;
  if (c >= '0' && c <= '7') {
    value = octal(rest);
  } else if (c == 'x' || c == 'u' || c == 'U' || c == 'N') {
    rest.remove_prefix(1);
    value = c == 'N' ? named(rest) : hex(rest, c == 'x' ? 2 : c == 'u' ? 4 : 8);
  } else {
    if (c == '\n') {
      rest.remove_prefix(1);  // a line that goes on
    } else {
      out.push_back('\\');
    }
    return;
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    fail("a string has an escape that is no character");
  append_character(out, value);
}

}  // namespace

std::string unescaped(std::string_view literal) {
  std::string out;
  while (!literal.empty()) {
    const std::size_t backslash = std::min(literal.find('\\'), literal.size());
    out.append(literal.substr(0, backslash));
    literal.remove_prefix(backslash);
    if (literal.empty()) break;
    literal.remove_prefix(1);
    if (literal.empty()) fail("a string ends with a backslash");
    escape_character(literal, out);
  }
  return out;
}

}  // namespace caldera::chat
