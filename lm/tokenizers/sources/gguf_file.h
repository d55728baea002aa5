// The tokenizer of a GGUF file. Private to lm/tokenizers/.
#pragma once

#include <filesystem>
#include <memory>

#include "lm/tokenizers/tokenizer.h"

namespace caldera::detail {

/// The tokenizer.json that the file holds whole (tokenizer.huggingface.json), if it does, else what its own
/// keys describe; where it has neither, bytes, if its vocabulary has their size. Throws FileError.
std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& path);

}  // namespace caldera::detail
