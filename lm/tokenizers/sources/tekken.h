// Mistral's tokenizer file, tekken.json. Private to lm/tokenizers/.
#pragma once

#include <string>
#include <string_view>

#include "lm/tokenizers/pipeline/pipeline.h"

namespace caldera::detail {

/// The stages that a tekken.json describes (format: https://github.com/mistralai/mistral-common): tokens as
/// bytes in base64, in the order of their ranks, an expression that cuts texts, and special tokens, whose ids
/// come first. Texts begin with "<s>". Throws FileError, beginning with `where`.
TokenizerParts read_tekken(std::string_view file, const std::string& where);

}  // namespace caldera::detail
