// Unicode characters in UTF-8 texts and their properties, as ICU knows them. Private to lm/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caldera::detail {

struct Character {
  char32_t value = 0;
  std::size_t bytes = 0;
};

/// The character that `text` begins with. `text` must be UTF-8 and not empty.
inline Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {static_cast<char32_t>((lead & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
  if (lead < 0xF0) {
    return {static_cast<char32_t>((lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)), 3};
  }
  return {static_cast<char32_t>((lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
                                (byte(3) & 0x3F)),
          4};
}

/// The character that `text` ends with. `text` must be UTF-8 and not empty.
Character last_character(std::string_view text);

void append_character(std::string& text, char32_t c);

/// Number of characters of a UTF-8 text.
std::size_t character_count(std::string_view text);

bool is_white_space(char32_t c);  ///< the property White_Space
bool is_punctuation(
    char32_t c);              ///< general category P, or ASCII and neither letter, digit, space nor control
bool is_numeric(char32_t c);  ///< general category N
bool is_mark(char32_t c);     ///< general category M
bool is_nonspacing_mark(char32_t c);  ///< general category Mn
bool is_other(char32_t c);            ///< general category C: controls, formats, unassigned
bool is_word(char32_t c);             ///< what \w of a regular expression matches: Alphabetic, M, Nd, Pc

/// A number for the script of `c`, equal for characters of one script.
int script_of(char32_t c);
int han_script();
bool is_kana(char32_t c);  ///< Hiragana or Katakana

/// Appends `c` in lower case. One character may become two.
void append_lower_case(std::string& text, char32_t c);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// `text`, which must be UTF-8, in a Unicode normal form.
std::string normal_form(std::string text, NormalForm form);

}  // namespace caldera::detail
