// The pre-tokenizer Metaspace. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace caldera::detail {

enum class PrependScheme : std::uint8_t { always, first, never };
/// Makes spaces U+2581 (`replacement`), puts one before the text, and splits before each if `split`.
std::unique_ptr<PreTokenizer> make_metaspace(std::string replacement, PrependScheme scheme, bool split);

}  // namespace caldera::detail
