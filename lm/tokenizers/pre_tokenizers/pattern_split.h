// Pre-tokenizers that cut at a pattern, and sequences of pre-tokenizers. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <vector>

#include "lm/base/regex/text_pattern.h"
#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace caldera::detail {

std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> steps);
/// Splits at the matches of `pattern`; with `invert`, at what is between them.
std::unique_ptr<PreTokenizer> make_split(TextPattern pattern, SplitBehavior behavior, bool invert);

}  // namespace caldera::detail
