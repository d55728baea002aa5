#include "lm/tokenizers/vocabulary/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "lm/base/unicode/characters.h"
#include "lm/base/unicode/utf8.h"

namespace caldera::detail {
namespace {

struct Alphabet {
  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t c = itself ? static_cast<char32_t>(b) : next++;
      append_character(characters[static_cast<std::size_t>(b)], c);
      bytes[c] = static_cast<std::int16_t>(b);
    }
  }
  std::array<std::string, 256> characters;
  std::array<std::int16_t, 0x180> bytes{};  ///< by character
};

const Alphabet& alphabet() {
  static const Alphabet kMade;
  return kMade;
}

}  // namespace

void append_byte_characters(std::string_view bytes, std::string& out) {
  const Alphabet& letters = alphabet();
  for (const char c : bytes) out += letters.characters[static_cast<unsigned char>(c)];
}

std::string bytes_to_characters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  append_byte_characters(bytes, out);
  return out;
}

std::optional<std::string> characters_to_bytes(std::string_view text) {
  const Alphabet& letters = alphabet();
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (utf8_character(text) == 0) return std::nullopt;
    const auto c = first_character(text);
    if (c.value >= letters.bytes.size() || letters.bytes[c.value] < 0) return std::nullopt;
    out += static_cast<char>(letters.bytes[c.value]);
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string byte_level_bytes(std::string_view text) {
  auto bytes = characters_to_bytes(text);
  return bytes ? std::move(*bytes) : std::string(text);
}

}  // namespace caldera::detail
