// Tokens such as "<0x0A>", which stand for one byte each. Private to lm/tokenizers/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lm/tokenizers/vocabulary/token_table.h"

namespace caldera::detail {

/// The byte that a token such as "<0x0A>" stands for.
std::optional<char> byte_of_token(std::string_view token);

/// The byte tokens of a vocabulary.
class ByteTokens {
 public:
  ByteTokens() { ids_.fill(-1); }
  explicit ByteTokens(const TokenTable& tokens);

  /// Appends the tokens of the bytes of `text`; appends nothing and returns false where one has none.
  bool append(std::string_view text, std::vector<std::int32_t>& ids) const;
  bool has(std::int32_t id) const;

 private:
  std::array<std::int32_t, 256> ids_{};
};

}  // namespace caldera::detail
