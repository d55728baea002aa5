// UTF-8, as the Unicode standard defines it. Private to lm/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace caldera::detail {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// Length of the well-formed character that `text` begins with, or 0 if it begins with none. Surrogates,
/// overlong forms and values above U+10FFFF are not well-formed.
std::size_t utf8_character(std::string_view text);

bool is_utf8(std::string_view text);

/// `text` with one U+FFFD for each ill-formed part, where parts are cut as the standard recommends ("maximal
/// subparts") and as Python and Rust do.
std::string to_utf8(std::string_view text);

/// Number of bytes at the end of `text` that begin a character but do not finish it: 0 to 3.
std::size_t incomplete_tail(std::string_view text);

}  // namespace caldera::detail
