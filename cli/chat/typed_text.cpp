#include "cli/chat/typed_text.h"

#include <algorithm>
#include <utility>

#include "lm/base/unicode/utf8.h"

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
  const std::size_t size = detail::utf8_character(bytes);
  if (size == 0 && detail::incomplete_tail(bytes) == bytes.size()) return 0;
  const std::size_t taken = std::max<std::size_t>(size, 1);
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
