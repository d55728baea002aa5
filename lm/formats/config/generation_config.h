// GenerationConfig: what a model's generation_config.json says of how to sample it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace caldera {

/// The fields of Hugging Face's GenerationConfig that sampling here knows. Absent ones are not set.
struct GenerationConfig {
  std::vector<std::int64_t> eos_token_ids;  ///< every token that ends a text; may be empty
  std::optional<bool> do_sample;            ///< false: take the most likely token
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
};

/// Reads generation_config.json of a model folder; one without such a file sets nothing. Of a GGUF file: the
/// tokens that end a text. Throws FileError for a file that is not readable, or a field of a wrong type.
GenerationConfig load_generation_config(const std::filesystem::path& model);

}  // namespace caldera
