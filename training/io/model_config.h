// ModelConfig: the fields of a Hugging Face config.json that every family of decoders has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/io/json_text.h"

namespace caldera {

namespace detail {
class JsonFields;
}

/// The shared configuration of a decoder. A family derives its own from it (LlamaConfig), which adds fields
/// and sets defaults. Sizes have no default and must be given.
struct ModelConfig {
  std::string architecture;  ///< "LlamaForCausalLM"
  std::string model_type;    ///< "llama"
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
  std::string hidden_act = "silu";
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  ///< every token that ends a text; may be empty
  double initializer_range = 0.02;
  std::string torch_dtype = "float32";  ///< the dtype the weights are stored in, as the file says it

  /// Throws ValueError, "config: field 'x' ...", for a value out of its domain. `activations` are the values
  /// of hidden_act that the family computes.
  void validate(std::initializer_list<std::string_view> activations = {"silu"}) const;

  bool operator==(const ModelConfig&) const = default;
};

namespace detail {

/// How a config.json names a family.
struct FamilyName {
  std::string_view architecture;
  std::string_view model_type;
};

/// The place in `known` of the family that a config.json names by `architectures`, `model_type` or both.
/// Throws FileError naming the known ones for any other, for two that contradict each other, and for none.
std::size_t match_family(const JsonFields& fields, std::span<const FamilyName> known);

/// Reads the shared fields. What the file leaves out keeps the value it has in `config`: the family's
/// default. Throws FileError, "path: field 'x' ...", for a feature that no family supports, and a field that
/// is missing, of a wrong type or out of its domain.
void read_config(const JsonFields& fields, ModelConfig& config,
                 std::initializer_list<std::string_view> activations = {"silu"});

/// A config.json, with a family's `own` fields, that Hugging Face transformers and the family's reader read
/// back as this configuration.
std::string config_json(const ModelConfig& config, const JsonMembers& own);

}  // namespace detail
}  // namespace caldera
