// ModelConfig: the fields of a Hugging Face config.json that every family of decoders has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/formats/config/rope_scaling.h"

namespace caldera {

/// Fields of a configuration: names, and values as JSON.
using ConfigFields = std::vector<std::pair<std::string, std::string>>;

/// Says what distinguishes one layer of a decoder from another.
struct LayerConfig {
  bool sliding = false;  ///< looks at the last sliding_window positions only
  bool rotary = true;    ///< rotates queries and keys by their positions

  bool operator==(const LayerConfig&) const = default;
};

/// The shared configuration of a decoder. A family derives its own from it (LlamaConfig), which adds fields
/// and sets defaults. Sizes have no default and must be given.
struct ModelConfig {
  std::string architecture;  ///< "LlamaForCausalLM"
  std::string model_type;    ///< "llama"
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads =
      0;                      ///< in a file: null, or no default of the family, is num_attention_heads
  std::int64_t head_dim = 0;  ///< in a file: null, or no default, is hidden_size / num_attention_heads
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 2048;
  std::int64_t reserved_positions = 0;  ///< of those, how many come before a text's first one (RoBERTa)
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling = {};
  std::optional<RopeParameters> local_rope = {};  ///< of the layers that slide, where theirs differs
  std::optional<std::int64_t> sliding_window = {};
  std::vector<LayerConfig> layers = {};  ///< one for each; empty where none slides and all are rotary
  bool tie_word_embeddings = false;
  std::string hidden_act = "silu";
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  ///< every token that ends a text; may be empty
  double initializer_range = 0.02;
  std::string torch_dtype = "float32";  ///< the dtype the weights are stored in, as the file says it

  LayerConfig layer(std::int64_t index) const {
    return layers.empty() ? LayerConfig{} : layers.at(static_cast<std::size_t>(index));
  }
  /// The positions that a text may have: max_position_embeddings less the reserved ones, or more where
  /// rope_scaling says so.
  std::int64_t max_positions() const;

  /// Fields of the file that have no member here, as they stood: how the configuration is written, and no
  /// part of what it is.
  struct Kept {
    ConfigFields fields;
    bool operator==(const Kept& /*other*/) const { return true; }
  };
  Kept kept = {};

  /// Throws ValueError, "config: field 'x' ...", for a value out of its domain. `activations` are the values
  /// of hidden_act that the family computes: silu alone where there are none.
  void validate(std::span<const std::string_view> activations = {}) const;

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace caldera
