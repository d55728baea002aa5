#include "lm/base/base64.h"

#include <cstdint>

namespace caldera::detail {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t bits = 0;
    for (std::size_t j = i; j < i + 4; ++j) {
      const int value = j >= text.size() - padding ? 0 : value_of(text[j]);
      if (value < 0) return std::nullopt;
      bits = bits << 6 | static_cast<std::uint32_t>(value);
    }
    for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift & 0xFF);
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace caldera::detail
