// The vocabulary of a tokenizer, as a grammar looks at it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lm/generate/grammar/grammar.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// Reads the tokens' texts. `end_ids` end a text and add nothing to it; `marks` are special tokens that are
/// part of the text all the same, such as those around calls of tools: empty ones, and those that are no
/// token, are passed over. Throws ValueError where there is no end: a text could never be complete.
GrammarVocabulary tokenizer_vocabulary(const Tokenizer& tokenizer, const std::vector<std::int32_t>& end_ids,
                                       std::span<const std::string_view> marks = {});

}  // namespace caldera
