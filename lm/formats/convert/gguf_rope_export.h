// Rotary positions as keys of a GGUF file. Private to lm/formats/convert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lm/base/json_file.h"
#include "lm/formats/config/model_config.h"

namespace caldera::detail {

/// Holds what a GGUF file says of rotary positions.
struct RopeKeys {
  std::optional<double> theta, local_theta;
  std::string type;  ///< rope.scaling.type; empty: none is written
  std::optional<double> factor, attention_factor, beta_fast, beta_slow;
  std::optional<std::int64_t> original, turned;
  /// Tensors of factors by which frequencies are divided, by their names.
  std::vector<std::pair<std::string, std::vector<float>>> factors;
};

/// Makes the keys of a GGUF file. Throws FileError, naming the field of `fields`, for what GGUF cannot say.
RopeKeys rope_keys(const JsonFields& fields, const ModelConfig& config);

}  // namespace caldera::detail
