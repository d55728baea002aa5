#include "lm/chat/template/base/unicode.h"

#include <unicode/uchar.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

#include <algorithm>
#include <vector>

#include "lm/chat/template/base/budget.h"

namespace caldera::chat {
namespace {

using CaseMapping = int32_t (*)(UChar*, int32_t, const UChar*, int32_t, UErrorCode*);

std::u16string to_utf16(std::string_view text) {
  std::u16string units;
  units.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.value > 0xFFFF) {
      units.push_back(U16_LEAD(c.value));
      units.push_back(U16_TRAIL(c.value));
    } else {
      units.push_back(c.valid ? static_cast<char16_t>(c.value) : u'\xFFFD');
    }
    text.remove_prefix(c.bytes);
  }
  return units;
}

std::string from_utf16(std::u16string_view units) {
  std::string text;
  for (std::size_t i = 0; i < units.size(); ++i) {
    char32_t c = units[i];
    if (U16_IS_LEAD(c) && i + 1 < units.size())
      c = static_cast<char32_t>(U16_GET_SUPPLEMENTARY(c, units[++i]));
    append_character(text, c);
  }
  return text;
}

std::string map_case(std::string_view text, CaseMapping mapping) {
  const Charge charge(text.size() * 5);
  const std::u16string from = to_utf16(text);
  if (from.size() > (std::size_t{1} << 28))
    fail("a text of {} bytes is too long for a change of case", text.size());
  std::u16string to(from.size() + from.size() / 4 + 8, u'\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    UErrorCode error = U_ZERO_ERROR;
    const int32_t size = mapping(to.data(), static_cast<int32_t>(to.size()), from.data(),
                                 static_cast<int32_t>(from.size()), &error);
    to.resize(static_cast<std::size_t>(std::max(size, 0)));
    if (error != U_BUFFER_OVERFLOW_ERROR) break;
  }
  return from_utf16(to);
}

template <char Low, char High, char Change>
bool map_ascii(std::string_view text, std::string& out) {
  if (!std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return false;
  out = text;
  for (char& c : out) {
    if (c >= Low && c <= High) c = static_cast<char>(c + Change);
  }
  return true;
}

int32_t upper_of(UChar* to, int32_t room, const UChar* from, int32_t size, UErrorCode* error) {
  return u_strToUpper(to, room, from, size, "", error);
}
int32_t lower_of(UChar* to, int32_t room, const UChar* from, int32_t size, UErrorCode* error) {
  return u_strToLower(to, room, from, size, "", error);
}
int32_t folded(UChar* to, int32_t room, const UChar* from, int32_t size, UErrorCode* error) {
  return u_strFoldCase(to, room, from, size, U_FOLD_CASE_DEFAULT, error);
}

/// The title case of one character. Full, as Python's: "ß" becomes "Ss".
std::string title_of(std::string_view character) {
  const char32_t c = first_character(character).value;
  std::string upper = to_upper(character);
  if (code_point_count(upper) > 1) {
    const std::size_t first = first_character(upper).bytes;
    return upper.substr(0, first) + to_lower(std::string_view(upper).substr(first));
  }
  std::string title;
  append_character(title, static_cast<char32_t>(u_totitle(static_cast<UChar32>(c))));
  return title;
}

bool is_cased(char32_t c);

/// Lower case of the character of `text` at `at`: a capital sigma becomes the final one at the end of a word.
std::string lower_at(std::string_view text, std::size_t at) {
  const Character c = first_character(text.substr(at));
  if (c.value != 0x3A3) return to_lower(text.substr(at, c.bytes));
  const auto ignorable = [](char32_t x) {
    return u_hasBinaryProperty(static_cast<UChar32>(x), UCHAR_CASE_IGNORABLE) != 0;
  };
  bool cased_before = false;
  for (std::string_view before = text.substr(0, at); !before.empty();) {
    const std::size_t bytes = last_character(before).bytes;
    const char32_t x = first_character(before.substr(before.size() - bytes)).value;
    before.remove_suffix(bytes);
    step();
    if (ignorable(x)) continue;
    cased_before = is_cased(x);
    break;
  }
  for (std::string_view behind = text.substr(at + c.bytes); cased_before && !behind.empty();) {
    const Character x = first_character(behind);
    behind.remove_prefix(x.bytes);
    step();
    if (ignorable(x.value)) continue;
    cased_before = !is_cased(x.value);
    break;
  }
  return cased_before ? "\u03C2" : "\u03C3";
}

bool is_cased(char32_t c) { return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED) != 0; }

}  // namespace

std::size_t code_point_count(std::string_view text) {
  std::size_t count = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    at += static_cast<unsigned char>(text[at]) < 0x80 ? 1 : first_character(text.substr(at)).bytes;
    ++count;
  }
  return count;
}

std::size_t byte_offset(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) {
    at += static_cast<unsigned char>(text[at]) < 0x80 ? 1 : first_character(text.substr(at)).bytes;
  }
  return at;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_alpha(char32_t c) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_L_MASK) != 0; }
bool is_decimal(char32_t c) { return u_charType(static_cast<UChar32>(c)) == U_DECIMAL_DIGIT_NUMBER; }
bool is_digit(char32_t c) {
  const int type = u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}
bool is_numeric(char32_t c) {
  return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}
bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  const uint32_t hidden = U_GC_C_MASK | U_GC_Z_MASK;
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & hidden) == 0;
}
bool is_identifier_start(char32_t c) {
  return c == '_' || u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_XID_START) != 0;
}
bool is_identifier_part(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_XID_CONTINUE) != 0;
}
bool is_upper(char32_t c) { return u_isUUppercase(static_cast<UChar32>(c)) != 0; }
bool is_lower(char32_t c) { return u_isULowercase(static_cast<UChar32>(c)) != 0; }
bool is_title(char32_t c) { return u_charType(static_cast<UChar32>(c)) == U_TITLECASE_LETTER; }
int digit_value(char32_t c) { return u_charDigitValue(static_cast<UChar32>(c)); }

char32_t character_named(const std::string& name) {
  UErrorCode error = U_ZERO_ERROR;
  const UChar32 c = u_charFromName(U_EXTENDED_CHAR_NAME, name.c_str(), &error);
  if (U_SUCCESS(error) != 0) return static_cast<char32_t>(c);
  error = U_ZERO_ERROR;
  const UChar32 alias = u_charFromName(U_CHAR_NAME_ALIAS, name.c_str(), &error);
  return U_SUCCESS(error) != 0 ? static_cast<char32_t>(alias) : 0;
}

std::string to_upper(std::string_view text) {
  std::string out;
  return map_ascii<'a', 'z', 'A' - 'a'>(text, out) ? out : map_case(text, upper_of);
}

std::string to_lower(std::string_view text) {
  std::string out;
  return map_ascii<'A', 'Z', 'a' - 'A'>(text, out) ? out : map_case(text, lower_of);
}

std::string fold_case(std::string_view text) { return map_case(text, folded); }

std::string swap_case(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    const std::string_view here = text.substr(at, c.bytes);
    step();
    const bool upper = c.valid && is_upper(c.value);
    const bool lower = c.valid && is_lower(c.value);
    out += upper ? lower_at(text, at) : lower ? to_upper(here) : std::string(here);
    at += c.bytes;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const std::size_t first = first_character(text).bytes;
  return title_of(text.substr(0, first)) + to_lower(text).substr(to_lower(text.substr(0, first)).size());
}

std::string title_case(std::string_view text) {
  std::string out;
  bool inside = false;  // after a cased character
  for (std::size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    const std::string_view here = text.substr(at, c.bytes);
    step();
    const bool cased = c.valid && is_cased(c.value);
    out += !cased ? std::string(here) : inside ? lower_at(text, at) : title_of(here);
    inside = cased;
    at += c.bytes;
  }
  return out;
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    const Character c = first_character(text);
    if (!c.valid || !is_space(c.value)) break;
    text.remove_prefix(c.bytes);
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = last_character(text).bytes;
    const Character c = first_character(text.substr(text.size() - bytes));
    if (!c.valid || !is_space(c.value)) break;
    text.remove_suffix(bytes);
  }
  return text;
}

}  // namespace caldera::chat
