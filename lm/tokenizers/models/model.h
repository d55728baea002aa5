// The third stage of a tokenizer: from words to token ids. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lm/tokenizers/vocabulary/token_table.h"

namespace caldera::detail {

/// A model. Immutable; all methods may be called from several threads at once.
class Model {
 public:
  virtual ~Model() = default;

  /// Appends the ids of `word`, which is UTF-8 and not empty. What a word gives depends on nothing else.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;
  /// Encodes a word of any bytes, each of which the vocabulary writes as a character of the byte-level
  /// alphabet.
  virtual void encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const;
  /// Length of a first part of `word`, at least a character, for which encode may be called by itself: the
  /// ids of the word are those of its parts.
  virtual std::size_t first_part(std::string_view word) const { return word.size(); }
  virtual const TokenTable& tokens() const = 0;
};

}  // namespace caldera::detail
