// Rotary positions of a GGUF file in Hugging Face's terms. Private to lm/formats/.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "lm/formats/gguf/gguf_family.h"
#include "lm/formats/gguf/gguf_file.h"

namespace caldera::detail {

/// Adds rope_theta, rope_scaling and partial_rotary_factor to a configuration that has the widths already.
/// Factors of frequencies that Llama 3's rule gives are named by that rule; others are given one by one, as
/// longrope gives them. Throws FileError for a scaling that is not known.
void add_rope(nlohmann::ordered_json& config, const GgufFile& file, const GgufFamily& family);

/// Computes the factors of Llama 3's rule (transformers' _compute_llama3_parameters) for `count` pairs of
/// features.
std::vector<double> llama3_factors(std::size_t count, double theta, double factor, double low, double high,
                                   double original);

}  // namespace caldera::detail
