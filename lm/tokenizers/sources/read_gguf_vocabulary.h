// The tokenizer of a GGUF file.
#pragma once

#include <filesystem>

#include "lm/tokenizers/sources/gguf_vocabulary.h"

namespace caldera {

/// The vocabulary of a GGUF file's metadata. Throws FileError for a malformed file, one without a tokenizer,
/// and values of wrong types.
GgufVocabulary read_gguf_vocabulary(const std::filesystem::path& path);

}  // namespace caldera
