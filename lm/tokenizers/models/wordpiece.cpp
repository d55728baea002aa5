#include "lm/tokenizers/models/wordpiece.h"

#include <optional>

#include "lm/base/unicode/characters.h"

namespace caldera::detail {

WordPieceModel::WordPieceModel(TokenTable tokens, std::int32_t unknown_id, std::string continuing_prefix,
                               std::size_t max_characters)
    : tokens_(std::move(tokens)),
      unknown_id_(unknown_id),
      continuing_prefix_(std::move(continuing_prefix)),
      max_characters_(max_characters) {
  std::vector<ByteTrie::Entry> entries;
  entries.reserve(tokens_.count());
  tokens_.for_each([&](std::string_view text, std::int32_t id) { entries.emplace_back(text, id); });
  trie_ = ByteTrie(std::move(entries));
}

void WordPieceModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::size_t first = ids.size();
  const auto give_up = [&] {
    ids.resize(first);
    ids.push_back(unknown_id_);
  };
  if (character_count(word) > max_characters_) return give_up();
  std::string_view rest = word;
  while (!rest.empty()) {
    ByteTrie::Position position;
    bool begun = true;
    if (ids.size() > first) {
      for (const char c : continuing_prefix_) begun = begun && trie_.step(position, c);
    }
    std::size_t longest = 0;
    std::int32_t id = -1;
    for (std::size_t i = 0; begun && i < rest.size() && trie_.step(position, rest[i]); ++i) {
      // Tokens are cut between characters, also where the vocabulary holds parts of them.
      const bool whole = i + 1 == rest.size() || !is_continuation(rest[i + 1]);
      const auto found = trie_.value(position);
      if (found < 0 || !whole) continue;
      longest = i + 1;
      id = found;
    }
    if (id < 0) return give_up();
    ids.push_back(id);
    rest.remove_prefix(longest);
  }
}

void WordLevelModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  const auto id = tokens_.find(word);
  if (id) {
    ids.push_back(*id);
  } else if (unknown_id_) {
    ids.push_back(*unknown_id_);
  }
}

}  // namespace caldera::detail
