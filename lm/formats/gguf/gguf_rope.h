// Rotary positions of a GGUF file in Hugging Face's terms. Private to lm/formats/.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lm/formats/gguf/gguf_family.h"
#include "lm/formats/gguf/gguf_file.h"

namespace caldera::detail {

class JsonFields;

/// Adds rope_theta, rope_scaling and partial_rotary_factor to a configuration that has the widths already.
/// Factors of frequencies that Llama 3's rule gives are named by that rule; others are given one by one, as
/// longrope gives them. Throws FileError for a scaling that is not known.
void add_rope(nlohmann::ordered_json& config, const GgufFile& file, const GgufFamily& family);

/// Holds what a GGUF file says of rotary positions.
struct RopeKeys {
  std::optional<double> theta, local_theta;
  std::string type;  ///< rope.scaling.type; empty: none is written
  std::optional<double> factor, attention_factor, beta_fast, beta_slow;
  std::optional<std::int64_t> original;
  /// Tensors of factors by which frequencies are divided, by their names.
  std::vector<std::pair<std::string, std::vector<float>>> factors;
};

/// Makes the keys of a GGUF file: from rope_scaling, or rope_parameters, for all layers or by type of layer.
/// Throws FileError for what GGUF cannot say.
RopeKeys rope_keys(const JsonFields& config, std::int64_t head_dim);

}  // namespace caldera::detail
