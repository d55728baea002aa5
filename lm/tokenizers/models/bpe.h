// Byte-pair encoding. Private to lm/tokenizers/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/tokenizers/models/merge_table.h"
#include "lm/tokenizers/models/model.h"
#include "lm/tokenizers/vocabulary/byte_tokens.h"
#include "lm/tokenizers/vocabulary/character_ids.h"
#include "lm/tokenizers/vocabulary/word_cuts.h"

namespace caldera::detail {

/// Joins the characters of a word to tokens: of all pairs of neighbours that may merge, those of the lowest
/// rank first, of equal ones the leftmost.
class BpeModel final : public Model {
 public:
  struct Options {
    std::optional<std::int32_t> unknown_id;  ///< for a character without a token
    bool fuse_unknown = false;               ///< one for a run of those
    bool byte_fallback = false;              ///< byte tokens for a character without a token
    bool ignore_merges = false;              ///< a word that is a token becomes it, whatever the merges
    std::string continuing_prefix;           ///< before each character of a word but the first
    std::string word_suffix;                 ///< after the last
  };

  BpeModel(TokenTable tokens, MergeTable merges, Options options);

  /// O(n log n). Throws ValueError above 2^31 characters.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;
  void encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const override;
  std::size_t first_part(std::string_view word) const override { return cuts_.first_part(word); }
  const TokenTable& tokens() const override { return tokens_; }

 private:
  /// Whether a part of a word, joined on its own, gives what it gives within the word.
  bool parts_stand_alone() const;
  /// Appends the ids of the word's characters, before any merge.
  void characters(std::string_view word, std::vector<std::int32_t>& ids) const;

  TokenTable tokens_;
  MergeTable merges_;
  Options options_;
  bool plain_;  ///< characters are looked up as they are, without a prefix or suffix
  ByteTokens byte_tokens_;
  CharacterIds character_ids_;
  /// The tokens of the byte-level alphabet by byte; nothing where one is missing or characters are not plain.
  std::optional<std::array<std::int32_t, 256>> byte_ids_;
  WordCuts cuts_;
};

}  // namespace caldera::detail
