// A model's tokenizer and chat template, from a folder or a GGUF file to either. Private to lm/formats/.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lm/formats/gguf/gguf_writer.h"

namespace caldera::detail {

/// The files beside the weights that a folder made of the model at `path` has: name and content. Of a GGUF
/// file tokenizer.json is what the file has of it, or is made of its vocabulary; tokenizer_config.json has
/// the chat template.
std::vector<std::pair<std::string, std::string>> tokenizer_files(const std::filesystem::path& path);

/// Adds the keys of the tokenizer and of the chat template of the model at `path`, if it has them. A
/// tokenizer that GGUF's own keys cannot say is kept as tokenizer.json alone, which Caldera reads.
void add_tokenizer(GgufWriter& writer, const std::filesystem::path& path);

}  // namespace caldera::detail
