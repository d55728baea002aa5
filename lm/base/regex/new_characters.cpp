#include "lm/base/regex/new_characters.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "lm/base/unicode/utf8.h"

namespace caldera::detail {
namespace {

struct NewRange {
  char32_t low, high;
  char32_t like;  // one of the same category, of as many bytes
};

constexpr char32_t kHan = 0x20000, kLetter = 0x10000, kModifier = 0x10780, kUpper = 0x10400, kLower = 0x10428,
                   kDigit = 0x104A0, kNumber = 0x10107;

// Of the Unicode Character Database: DerivedAge.txt of 16.0, and the categories L and N of these.
constexpr std::array<NewRange, 57> kNew{
    {{0x1C89, 0x1C89, 0x1C90},      {0x1C8A, 0x1C8A, 0x1C80},      {0xA7CB, 0xA7CC, 0xA7C9},
     {0xA7CD, 0xA7CD, 0xA7CA},      {0xA7DA, 0xA7DA, 0xA7C9},      {0xA7DB, 0xA7DB, 0xA7CA},
     {0xA7DC, 0xA7DC, 0xA7C9},      {0x105C0, 0x105F3, kLetter},   {0x10D40, 0x10D49, kDigit},
     {0x10D4A, 0x10D4D, kLetter},   {0x10D4E, 0x10D4E, kModifier}, {0x10D4F, 0x10D4F, kLetter},
     {0x10D50, 0x10D65, kUpper},    {0x10D6F, 0x10D6F, kModifier}, {0x10D70, 0x10D85, kLower},
     {0x10EC2, 0x10EC4, kLetter},   {0x11240, 0x11240, kLetter},   {0x1123F, 0x1123F, kLetter},
     {0x11380, 0x11389, kLetter},   {0x1138B, 0x1138B, kLetter},   {0x1138E, 0x1138E, kLetter},
     {0x11390, 0x113B5, kLetter},   {0x113B7, 0x113B7, kLetter},   {0x113D1, 0x113D1, kLetter},
     {0x113D3, 0x113D3, kLetter},   {0x116D0, 0x116E3, kDigit},    {0x11BC0, 0x11BE0, kLetter},
     {0x11BF0, 0x11BF9, kDigit},    {0x11F02, 0x11F02, kLetter},   {0x11F04, 0x11F10, kLetter},
     {0x11F12, 0x11F33, kLetter},   {0x11F50, 0x11F59, kDigit},    {0x1342F, 0x1342F, kLetter},
     {0x13441, 0x13446, kLetter},   {0x13460, 0x143FA, kLetter},   {0x16100, 0x1611D, kLetter},
     {0x16130, 0x16139, kDigit},    {0x16D40, 0x16D42, kModifier}, {0x16D43, 0x16D6A, kLetter},
     {0x16D6B, 0x16D6C, kModifier}, {0x16D70, 0x16D79, kDigit},    {0x18CFF, 0x18CFF, kLetter},
     {0x1B132, 0x1B132, kLetter},   {0x1B155, 0x1B155, kLetter},   {0x1CCF0, 0x1CCF9, kDigit},
     {0x1D2C0, 0x1D2D3, kNumber},   {0x1DF25, 0x1DF2A, kLower},    {0x1E030, 0x1E06D, kModifier},
     {0x1E4D0, 0x1E4EA, kLetter},   {0x1E4EB, 0x1E4EB, kModifier}, {0x1E4F0, 0x1E4F9, kDigit},
     {0x1E5D0, 0x1E5ED, kLetter},   {0x1E5F0, 0x1E5F0, kLetter},   {0x1E5F1, 0x1E5FA, kDigit},
     {0x2B739, 0x2B739, kHan},      {0x2EBF0, 0x2EE5D, kHan},      {0x31350, 0x323AF, kHan}}};

char32_t known(char32_t c) {
  for (const NewRange& range : kNew)
    if (range.low <= c && c <= range.high) return range.like;
  return c;
}

}  // namespace

std::string_view with_known_characters(std::string_view text, std::string& changed) {
  const auto may_begin = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xF0 || byte == 0xEA || byte == 0xE1;
  };
  for (auto at = std::find_if(text.begin(), text.end(), may_begin); at != text.end();
       at = std::find_if(at + 1, text.end(), may_begin)) {
    const auto place = static_cast<std::size_t>(at - text.begin());
    const Character c = first_character(text.substr(place));
    const char32_t like = known(c.value);
    if (like == c.value) continue;
    if (changed.empty()) changed = text;
    std::string bytes;
    append_character(bytes, like);
    changed.replace(place, c.bytes, bytes);
  }
  return changed.empty() ? text : std::string_view(changed);
}

}  // namespace caldera::detail
