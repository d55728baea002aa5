#include "lm/tokenizers/vocabulary/character_ids.h"

#include "lm/base/unicode/characters.h"
#include "lm/base/unicode/utf8.h"

namespace caldera::detail {

CharacterIds::CharacterIds(const TokenTable& tokens)
    : pages_(kCharacters >> kPageBits, 0), ids_(std::size_t{kPageMask} + 1, -1) {
  tokens.for_each([&](std::string_view text, std::int32_t) {
    if (text.empty() || utf8_character(text) != text.size()) return;
    const char32_t c = first_character(text).value;
    std::uint32_t& page = pages_[c >> kPageBits];
    if (page == 0) {
      page = static_cast<std::uint32_t>(ids_.size());
      ids_.resize(ids_.size() + kPageMask + 1, -1);
    }
    // Of two tokens of one text the table says which is meant.
    ids_[page + (c & kPageMask)] = tokens.find(text).value_or(-1);
  });
}

}  // namespace caldera::detail
