// ModelConfig of the eager API: what a config.json says of a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lm/formats/config/model_config.h"

namespace caldera::v1 {

/// The configuration of a model of any family that the library knows. A value.
class ModelConfig {
 public:
  /// Reads a config.json, a model folder or a GGUF file. Throws ModelError: FileNotFound, or InvalidConfig
  /// for what no model can be made of.
  static ModelConfig from_file(const std::filesystem::path& path);
  /// Reads the text of a config.json. Throws ModelError (InvalidConfig).
  static ModelConfig from_json(const std::string& text);

  /// Throws ModelError (InvalidConfig) for a field out of its domain; from_file() and from_json() have done
  /// so.
  void validate() const;

  std::int64_t hidden_size() const { return config_.hidden_size; }
  std::int64_t intermediate_size() const { return config_.intermediate_size; }
  std::int64_t num_layers() const { return config_.num_hidden_layers; }
  std::int64_t num_heads() const { return config_.num_attention_heads; }
  /// Heads of keys and values: fewer than num_heads() where queries are grouped.
  std::int64_t num_kv_heads() const { return config_.num_key_value_heads; }
  std::int64_t head_dim() const { return config_.head_dim; }
  std::int64_t vocab_size() const { return config_.vocab_size; }
  std::int64_t max_position_embeddings() const { return config_.max_positions(); }
  const std::string& model_type() const { return config_.model_type; }

  /// The text that it was read from.
  const std::string& json() const { return text_; }
  /// All fields, as the lazy API has them.
  const caldera::ModelConfig& lazy() const { return config_; }

 private:
  ModelConfig(std::string text, caldera::ModelConfig config)
      : text_(std::move(text)), config_(std::move(config)) {}

  std::string text_;
  caldera::ModelConfig config_;
};

}  // namespace caldera::v1
