#include "lm/tokenizers/vocabulary/byte_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace caldera::detail {

std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  const char* end = token.data() + 5;
  const auto [stop, error] = std::from_chars(token.data() + 3, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return static_cast<char>(value);
}

ByteTokens::ByteTokens(const TokenTable& tokens) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    ids_[byte] = tokens.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
}

bool ByteTokens::append(std::string_view text, std::vector<std::int32_t>& ids) const {
  const auto id_of = [&](char c) { return ids_[static_cast<unsigned char>(c)]; };
  if (!std::ranges::all_of(text, [&](char c) { return id_of(c) >= 0; })) return false;
  for (const char c : text) ids.push_back(id_of(c));
  return true;
}

bool ByteTokens::has(std::int32_t id) const { return id >= 0 && std::ranges::find(ids_, id) != ids_.end(); }

}  // namespace caldera::detail
