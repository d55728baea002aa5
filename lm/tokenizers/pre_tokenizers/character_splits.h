// Pre-tokenizers that cut between kinds of characters. Private to lm/tokenizers/.
#pragma once

#include <memory>

#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace caldera::detail {

std::unique_ptr<PreTokenizer> make_white_space_split();
/// White space goes, and each punctuation character is a word.
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();
std::unique_ptr<PreTokenizer> make_punctuation_split(SplitBehavior behavior);
/// Each digit, or each run of digits, is a word.
std::unique_ptr<PreTokenizer> make_digits(bool individual);
/// Splits at `delimiter`, which goes.
std::unique_ptr<PreTokenizer> make_delimiter_split(char32_t delimiter);
/// Splits where the script changes. Kana counts as Han, and a space belongs to any script.
std::unique_ptr<PreTokenizer> make_unicode_scripts();
/// Words of `length` characters.
std::unique_ptr<PreTokenizer> make_fixed_length(std::size_t length);

}  // namespace caldera::detail
