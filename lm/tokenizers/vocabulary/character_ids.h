// CharacterIds: the ids of tokens that are one character. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <vector>

#include "lm/tokenizers/vocabulary/token_table.h"

namespace caldera::detail {

/// A model of byte-pair encoding begins with one look-up for each character, of which a text has many and a
/// vocabulary few: a table by code point, in pages, is read without hashing. Immutable once made.
class CharacterIds {
 public:
  CharacterIds() : CharacterIds(TokenTable()) {}
  explicit CharacterIds(const TokenTable& tokens);

  /// The id of the token that is just `c`, at most U+10FFFF; -1 where there is none.
  std::int32_t find(char32_t c) const { return ids_[pages_[c >> kPageBits] + (c & kPageMask)]; }

 private:
  static constexpr int kPageBits = 7;
  static constexpr char32_t kPageMask = (1 << kPageBits) - 1;
  static constexpr char32_t kCharacters = 0x110000;

  std::vector<std::uint32_t> pages_;  ///< where a page begins in ids_; 0 is the page that has no token
  std::vector<std::int32_t> ids_;
};

}  // namespace caldera::detail
