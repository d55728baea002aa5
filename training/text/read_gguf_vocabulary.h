// The tokenizer and the chat template of a GGUF file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "training/text/gguf_vocabulary.h"

namespace caldera {

/// The vocabulary of a GGUF file's metadata. Throws FileError for a malformed file, one without a tokenizer,
/// and values of wrong types.
GgufVocabulary read_gguf_vocabulary(const std::filesystem::path& path);

/// Its chat template (a Jinja text), if it has one. Throws FileError for a malformed file.
std::optional<std::string> read_gguf_chat_template(const std::filesystem::path& path);

}  // namespace caldera
