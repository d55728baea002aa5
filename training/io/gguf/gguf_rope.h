// Rotary positions of a GGUF file in Hugging Face's terms. Private to training/io.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "training/io/gguf/gguf_family.h"
#include "training/io/gguf/gguf_file.h"

namespace caldera::detail {

/// Adds rope_theta, rope_scaling and partial_rotary_factor to a configuration that has the widths already.
/// Factors of frequencies that Llama 3's rule gives are named by that rule; others are given one by one, as
/// longrope gives them. Throws FileError for a scaling that is not known.
void add_rope(nlohmann::ordered_json& config, const GgufFile& file, const GgufFamily& family);

}  // namespace caldera::detail
