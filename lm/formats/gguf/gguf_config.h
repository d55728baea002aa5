// The metadata of a GGUF file as the config.json that the model has at Hugging Face. Private to lm/formats/.
#pragma once

#include <string>

#include "lm/formats/gguf/gguf_family.h"
#include "lm/formats/gguf/gguf_file.h"

namespace caldera::detail {

/// The file's family. Throws FileError for a file that is no model (an adapter, say) and for an architecture
/// that is not known, naming those that are.
const GgufFamily& family_of(const GgufFile& file);

/// Throws FileError, naming the key, for values that are missing or of a wrong type.
std::string gguf_config(const GgufFile& file, const GgufFamily& family);

/// Whether a tensor is part of the configuration and no weight: factors of rotary frequencies.
bool is_rope_factors(std::string_view gguf_name);

}  // namespace caldera::detail
