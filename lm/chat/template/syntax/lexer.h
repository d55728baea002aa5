// Cuts the source of a template into tokens.
//
// Text outside of tags is a token, trimmed as the options trim_blocks and lstrip_blocks and the signs in the
// tags say:
//   {% … %}   a newline right behind it is dropped, and so is whitespace between it and the start of its line
//   {# … #}   the same; a comment gives no token
//   {{ … }}   neither
//   {%- -%}   drops all whitespace on that side;  {%+ +%} drops none
//   {% raw %} … {% endraw %}   is text
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caldera::chat {

struct Position {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

enum class TokenKind : std::uint8_t {
  text,
  block_begin,
  block_end,
  print_begin,
  print_end,
  name,
  string,
  integer,
  real,
  symbol,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  ///< of a string: what it means; of numbers: the digits; of symbols and names: themselves
  Position at;

  bool is(std::string_view symbol) const { return kind == TokenKind::symbol && text == symbol; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

/// The tokens, the last of which is `end`. Throws a ChatTemplateError.
std::vector<Token> tokenize(std::string_view source);

}  // namespace caldera::chat
