// The `normalizer` of a tokenizer.json. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lm/tokenizers/normalizers/normalizer.h"

namespace caldera::detail {

/// The normalizer that a tokenizer.json describes: Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip,
/// StripAccents, Replace, Prepend, BertNormalizer, Precompiled, Nmt, ByteLevel; null gives nullptr. Throws
/// FileError naming a type that is not known.
std::unique_ptr<Normalizer> read_normalizer(const nlohmann::json& config, const std::string& where);

}  // namespace caldera::detail
