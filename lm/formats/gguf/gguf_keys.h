// The keys of a GGUF file that say what fields of config.json say, for reading and for writing. Private to
// lm/formats/.
#pragma once

#include <array>
#include <cstdint>

namespace caldera::detail {

enum class GgufKeyKind : std::uint8_t { integer, per_layer, number };

/// A key below the architecture's name ("llama."), and the field of config.json that says the same.
struct GgufKey {
  const char* key;
  const char* field;
  GgufKeyKind kind;
  bool required = false;
};

// llama.cpp's gguf-py/gguf/constants.py names the keys.
inline constexpr std::array kGgufKeys{
    GgufKey{"embedding_length", "hidden_size", GgufKeyKind::integer, true},
    GgufKey{"feed_forward_length", "intermediate_size", GgufKeyKind::per_layer},
    GgufKey{"block_count", "num_hidden_layers", GgufKeyKind::integer, true},
    GgufKey{"attention.head_count", "num_attention_heads", GgufKeyKind::per_layer, true},
    GgufKey{"attention.head_count_kv", "num_key_value_heads", GgufKeyKind::per_layer},
    GgufKey{"context_length", "max_position_embeddings", GgufKeyKind::integer, true},
    GgufKey{"attention.layer_norm_rms_epsilon", "rms_norm_eps", GgufKeyKind::number},
    GgufKey{"attn_logit_softcapping", "attn_logit_softcapping", GgufKeyKind::number},
    GgufKey{"final_logit_softcapping", "final_logit_softcapping", GgufKeyKind::number},
    GgufKey{"expert_used_count", "num_experts_per_tok", GgufKeyKind::integer},
    GgufKey{"attention.scale", "attention_multiplier", GgufKeyKind::number},
    GgufKey{"embedding_scale", "embedding_multiplier", GgufKeyKind::number},
    GgufKey{"residual_scale", "residual_multiplier", GgufKeyKind::number},
    GgufKey{"logit_scale", "logits_scaling", GgufKeyKind::number},
};

/// A field of config.json that is the id of a token, and its key.
struct GgufTokenKey {
  const char* key;
  const char* field;
};
inline constexpr std::array kGgufTokenKeys{
    GgufTokenKey{"tokenizer.ggml.bos_token_id", "bos_token_id"},
    GgufTokenKey{"tokenizer.ggml.eos_token_id", "eos_token_id"},
    GgufTokenKey{"tokenizer.ggml.eot_token_id", "eos_token_id"},
    GgufTokenKey{"tokenizer.ggml.eom_token_id", "eos_token_id"},
    GgufTokenKey{"tokenizer.ggml.padding_token_id", "pad_token_id"},
};

}  // namespace caldera::detail
