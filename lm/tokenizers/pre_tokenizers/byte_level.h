// The pre-tokenizer ByteLevel. Private to lm/tokenizers/.
#pragma once

#include <memory>

#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace caldera::detail {

/// Writes bytes as characters, after splitting by GPT-2's expression if `use_regex`.
std::unique_ptr<PreTokenizer> make_byte_level(bool add_prefix_space, bool use_regex);

}  // namespace caldera::detail
