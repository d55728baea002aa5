// UTF-8, as the Unicode standard defines it and ICU reads and writes it. Private to lm/ and training/.
#pragma once

#include <unicode/utf8.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caldera::detail {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// A character of a text, and the bytes that it takes there.
struct Character {
  char32_t value = 0;
  std::size_t bytes = 0;
  bool valid = true;  ///< whether the text is well-formed there
};

/// Returns the character that `text` begins with. A byte that begins no well-formed one (surrogates, overlong
/// forms and values above U+10FFFF are not well-formed) counts as a character of its own: U+FFFD, not valid.
/// No bytes for an empty text.
inline Character first_character(std::string_view text) {
  if (text.empty()) return {};
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  if (U8_IS_SINGLE(bytes[0])) return {bytes[0], 1};
  std::size_t at = 0;
  UChar32 value = 0;
  U8_NEXT(bytes, at, text.size(), value);
  if (value < 0) return {0xFFFD, 1, false};
  return {static_cast<char32_t>(value), at};
}

/// Returns the character that `text` ends with, likewise.
Character last_character(std::string_view text);

/// Appends a character, at most U+10FFFF.
void append_character(std::string& text, char32_t c);

/// Says whether a byte goes on with a character that another byte has begun.
inline bool is_continuation(char byte) { return U8_IS_TRAIL(static_cast<std::uint8_t>(byte)); }

/// Counts the characters of a text, which must be UTF-8.
std::size_t character_count(std::string_view text);

/// Returns the length of the well-formed character that `text` begins with, or 0 if it begins with none.
std::size_t utf8_character(std::string_view text);

bool is_utf8(std::string_view text);

/// Returns `text` with one U+FFFD for each ill-formed part, where parts are cut as the standard recommends
/// ("maximal subparts") and as Python and Rust do.
std::string to_utf8(std::string_view text);

/// Returns the number of bytes at the end of `text` that begin a character but do not finish it: 0 to 3.
std::size_t incomplete_tail(std::string_view text);

}  // namespace caldera::detail
