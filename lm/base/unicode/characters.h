// The properties of Unicode characters, and their forms, as ICU knows them. Private to lm/.
#pragma once

#include <cstdint>
#include <string>

#include "lm/base/unicode/utf8.h"

namespace caldera::detail {

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
