// BERT's WordPiece model. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lm/tokenizers/models/model.h"
#include "lm/tokenizers/vocabulary/byte_trie.h"

namespace caldera::detail {

/// Cuts a word from the left into the longest tokens there are; after the first, tokens that begin with the
/// prefix ("##") stand for what follows it. A word that cannot be cut so, or is too long, is unknown.
class WordPieceModel final : public Model {
 public:
  WordPieceModel(TokenTable tokens, std::int32_t unknown_id, std::string continuing_prefix,
                 std::size_t max_characters);

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;
  const TokenTable& tokens() const override { return tokens_; }

 private:
  TokenTable tokens_;
  ByteTrie trie_;
  std::int32_t unknown_id_;
  std::string continuing_prefix_;
  std::size_t max_characters_;
};

/// Each word is a token, or unknown.
class WordLevelModel final : public Model {
 public:
  WordLevelModel(TokenTable tokens, std::optional<std::int32_t> unknown_id)
      : tokens_(std::move(tokens)), unknown_id_(unknown_id) {}

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;
  const TokenTable& tokens() const override { return tokens_; }

 private:
  TokenTable tokens_;
  std::optional<std::int32_t> unknown_id_;
};

}  // namespace caldera::detail
