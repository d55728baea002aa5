// tokenizer.json and the vocabulary of a GGUF file, each made of the other. Private to lm/formats/.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lm/formats/gguf/gguf_writer.h"
#include "lm/tokenizers/sources/gguf_vocabulary.h"

namespace caldera::detail {

/// A tokenizer.json that gives the vocabulary's ids. Throws FileError for a kind of vocabulary that it cannot
/// be made of.
std::string tokenizer_json_of(const GgufVocabulary& vocabulary, const std::string& where);

/// Adds the keys "tokenizer.ggml.*" that say what tokenizer.json says, `folder` holding it and config.json. A
/// tokenizer that they cannot say is left out.
void add_vocabulary(GgufWriter& writer, std::string_view tokenizer_json, const std::filesystem::path& folder);

}  // namespace caldera::detail
