// Llama: the pre-norm decoder of Hugging Face's LlamaForCausalLM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lm/models/decoder.h"

namespace caldera {

/// Defaults are those of Hugging Face's LlamaConfig.
struct LlamaConfig : ModelConfig {
  bool attention_bias = false;  ///< of all four projections
  bool mlp_bias = false;

  LlamaConfig() : LlamaConfig(ModelConfig{}) {}
  /// A Llama with these shared fields: so that code may fill in a ModelConfig.
  LlamaConfig(const ModelConfig& shared);  // NOLINT(google-explicit-constructor)

  /// Reads a config.json (or any file of that form). Throws FileError, "path: field 'x' ...", for a file that
  /// is not readable JSON, another architecture, a feature that is not supported, and a field that is
  /// missing, of a wrong type or out of its domain.
  static LlamaConfig from_file(const std::filesystem::path& path);
  /// Reads it from text; `where` begins every message.
  static LlamaConfig from_json(std::string_view text, const std::string& where = "config");
  /// A config.json that Hugging Face transformers and from_json read back as this configuration.
  std::string to_json() const;

  bool operator==(const LlamaConfig&) const = default;
};

/// A Llama-style decoder: see Decoder.
class Llama final : public Decoder {
 public:
  /// Random weights as Hugging Face initialises them: matrices normal(0, initializer_range), norms one,
  /// biases zero; a function of the seed alone. Throws ValueError for a bad configuration.
  Llama(const LlamaConfig& config, Device device, std::uint64_t seed);

  /// Reads a model folder: config.json and model.safetensors or its shards (see load_weights).
  static std::unique_ptr<Llama> load(const std::filesystem::path& dir, Device device,
                                     DType dtype = DType::f32);
  /// The model with weights that are not computed yet: for load_weights or materialize().
  static std::unique_ptr<Llama> make_lazily(const LlamaConfig& config, Device device, std::uint64_t seed);

  const LlamaConfig& config() const override { return config_; }

 protected:
  ConfigFields own_fields() const override;

 private:
  struct Lazily {};
  Llama(Lazily, const LlamaConfig& config, Device device, std::uint64_t seed);

  LlamaConfig config_;
};

}  // namespace caldera
