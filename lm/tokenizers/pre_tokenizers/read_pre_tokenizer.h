// The `pre_tokenizer` of a tokenizer.json. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lm/tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace caldera::detail {

/// The pre-tokenizer that a tokenizer.json describes: Sequence, ByteLevel, Split, Whitespace,
/// WhitespaceSplit, Metaspace, BertPreTokenizer, Digits, Punctuation, CharDelimiterSplit, UnicodeScripts,
/// FixedLength; null gives nullptr. Throws FileError naming a type that is not known.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const nlohmann::json& config, const std::string& where);

}  // namespace caldera::detail
