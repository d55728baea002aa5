// Reads the stages of a tokenizer.json. Private to lm/tokenizers/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lm/tokenizers/pipeline/pipeline.h"

namespace caldera::detail {

/// The stages that a tokenizer.json describes (format: https://github.com/huggingface/tokenizers). Its
/// `truncation` and `padding` are what a call may ask for: as in the transformers library, they change
/// nothing here. Throws FileError, beginning with `where`.
TokenizerParts read_tokenizer(const nlohmann::json& root, const std::string& where);

}  // namespace caldera::detail
