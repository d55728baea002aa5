// What a model is: the fields of a Hugging Face config.json that a decoder is built from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// A Llama-style decoder. Defaults are those of Hugging Face's LlamaConfig; sizes have none and must be
/// given.
struct ModelConfig {
  std::string architecture = "LlamaForCausalLM";
  std::string model_type = "llama";
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;  ///< in a file: default num_attention_heads
  std::int64_t head_dim = 0;             ///< in a file: default hidden_size / num_attention_heads
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  bool tie_word_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  std::string hidden_act = "silu";
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  ///< every token that ends a text; may be empty
  double initializer_range = 0.02;
  std::string torch_dtype = "float32";  ///< the dtype the weights are stored in, as the file says it

  /// Reads a config.json (or any file of that form). Throws FileError, "path: field 'x' ...", for a file that
  /// is not readable JSON, an architecture or feature that is not supported, and a field that is missing, of
  /// a wrong type or out of its domain.
  static ModelConfig from_file(const std::filesystem::path& path);
  /// The same from text; `where` begins every message.
  static ModelConfig from_json(std::string_view text, const std::string& where = "config");
  /// A config.json that Hugging Face transformers and from_json read back as this configuration.
  std::string to_json() const;
  /// Throws ValueError, "config: field 'x' ...", for a value out of its domain. The readers have called it.
  void validate() const;

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace caldera
