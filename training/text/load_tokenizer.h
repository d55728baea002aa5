// Opens the tokenizer of a model folder, whichever kind it is.
#pragma once

#include <filesystem>
#include <memory>

#include "training/text/tokenizer.h"

namespace caldera {

/// The tokenizer of a model folder: its tokenizer.json, or, where there is none, bytes, if config.json gives
/// a vocab_size of 258 (256 bytes, bos, eos) or 256 (bytes only). Special tokens are named by
/// tokenizer_config.json, else by config.json. Throws FileError for malformed files and features that are not
/// supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model_dir);

}  // namespace caldera
