// Texts as sequences of Unicode code points, with the character classes and case mappings that Python's str
// has.
//
// A byte that is not part of well-formed UTF-8 counts as one code point and is kept as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lm/base/unicode/utf8.h"

namespace caldera::chat {

using detail::append_character;
using detail::Character;
using detail::first_character;
using detail::last_character;

std::size_t code_point_count(std::string_view text);
/// The byte at which code point `index` begins; the size of the text where it has no more than `index`.
std::size_t byte_offset(std::string_view text, std::size_t index);

/// Answer like str.isspace(), str.isalpha() and the others for one character.
bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_printable(char32_t c);
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
/// Whether \w of a regular expression matches it.
inline bool is_word(char32_t c) { return c == '_' || is_alpha(c) || is_numeric(c); }
/// The value of a decimal digit in any script; -1 where it is none.
int digit_value(char32_t c);
/// The character that \N{name} stands for; 0 where there is none.
char32_t character_named(const std::string& name);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string swap_case(std::string_view text);
/// str.capitalize(): the first character in title case, the others in lower case.
std::string capitalize(std::string_view text);
/// str.title(): so for each run of letters.
std::string title_case(std::string_view text);
std::string fold_case(std::string_view text);

/// Without the whitespace at its ends.
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

}  // namespace caldera::chat
