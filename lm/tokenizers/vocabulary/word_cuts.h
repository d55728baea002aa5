// Finds where a text without a pre-tokenizer falls into parts that a model may see one at a time. Private to
// lm/tokenizers/.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lm/tokenizers/vocabulary/token_table.h"

namespace caldera::detail {

/// A model that joins characters to tokens of its vocabulary never joins two that no token holds side by
/// side. In vocabularies of the SentencePiece kind U+2581 stands for a space and begins tokens, so that most
/// texts may be cut before it with no change to any token.
class WordCuts {
 public:
  WordCuts() = default;
  /// Cuts for models that join characters to these tokens and to no others.
  explicit WordCuts(const TokenTable& tokens);

  /// Length of the first part of `text`: at least one character, at most all of it.
  std::size_t first_part(std::string_view text) const;

 private:
  bool usable_ = false;
  std::vector<char32_t> joined_;  ///< characters that some token holds before U+2581, sorted
};

}  // namespace caldera::detail
