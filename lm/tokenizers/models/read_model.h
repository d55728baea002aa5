// The `model` of a tokenizer.json. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lm/tokenizers/models/model.h"

namespace caldera::detail {

/// BPE, Unigram, WordPiece or WordLevel; older files do not say which. Throws FileError for another type, a
/// malformed vocabulary or merge list, and a dropout, with which no text would give the same ids twice.
std::unique_ptr<Model> read_model(const nlohmann::json& config, const std::string& where);

/// The tokens of an object of ids by text. Throws FileError for what is none, ids out of range and ids that
/// two tokens have.
TokenTable read_vocabulary(const nlohmann::json& vocabulary, const std::string& where);

}  // namespace caldera::detail
