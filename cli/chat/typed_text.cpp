#include "cli/chat/typed_text.h"

#include <algorithm>
#include <utility>

namespace caldera::cli {
namespace {

constexpr std::string_view kPasteBegins = "\x1b[200~";
constexpr std::string_view kPasteEnds = "\x1b[201~";
constexpr std::string_view kLineSign = "\xE2\x8F\x8E";  // U+23CE
constexpr std::string_view kTabSign = "\xE2\x87\xA5";   // U+21E5
constexpr char32_t kLineCharacter = 0x23CE;
constexpr char32_t kTabCharacter = 0x21E5;

char32_t character_of(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() == 1) return byte(0);
  char32_t character = byte(0) & (0x7FU >> bytes.size());
  for (std::size_t i = 1; i < bytes.size(); ++i) character = (character << 6) | (byte(i) & 0x3FU);
  return character;
}

/// How many bytes a character has that begins with this one; 1 for what begins none.
std::size_t size_of(unsigned char first) {
  if (first >= 0xF0 && first < 0xF8) return 4;
  if (first >= 0xE0) return first < 0xF0 ? 3 : 1;
  return first >= 0xC2 ? 2 : 1;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

void TypedText::push(std::string_view bytes) {
  held_ += bytes;
  std::size_t done = 0;
  while (const std::size_t size = take_one(std::string_view(held_).substr(done))) done += size;
  held_.erase(0, done);
}

void TypedText::flush() {
  for (const char c : held_) add(static_cast<unsigned char>(c));
  held_.clear();
}

char32_t TypedText::take() {
  const char32_t character = characters_.front();
  characters_.pop_front();
  return character;
}

/// Takes a mark or a character, and returns its size: 0 where not all of it has come.
std::size_t TypedText::take_one(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const std::string_view mark = pasting_ ? kPasteEnds : kPasteBegins;
  if (bytes.starts_with(mark)) {
    pasting_ = !pasting_;
    return mark.size();
  }
  if (mark.starts_with(bytes)) return 0;
  const std::size_t size = size_of(static_cast<unsigned char>(bytes.front()));
  const std::string_view rest = bytes.substr(1, size - 1);
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  const bool is_character = std::ranges::all_of(rest, goes_on);
  if (is_character && bytes.size() < size) return 0;
  const std::size_t taken = is_character ? size : 1;
  add(character_of(bytes.substr(0, taken)));
  return taken;
}

void TypedText::add(char32_t character) {
  const bool after_return = std::exchange(after_return_, character == '\r');
  if (!pasting_) {
    characters_.push_back(character);
  } else if (character == '\r' || character == '\n') {
    if (character == '\r' || !after_return) characters_.push_back(kLineCharacter);
  } else if (character == '\t') {
    characters_.push_back(kTabCharacter);
  } else if (character >= 0x20 && character != 0x7F) {
    characters_.push_back(character);
  }
}

std::string with_line_ends(std::string_view text) {
  std::string result(text);
  replace_all(result, kLineSign, "\n");
  replace_all(result, kTabSign, "\t");
  while (result.ends_with('\n')) result.pop_back();
  return result;
}

}  // namespace caldera::cli
