#include "lm/formats/gguf/gguf_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace caldera::detail {
namespace {

// gguf-py's tensor_mapping.py, for the decoders that are built as Llama is.
constexpr std::array kDecoderNames{
    NamePair{"token_embd", "model.embed_tokens"},
    NamePair{"output_norm", "model.norm"},
    NamePair{"output", "lm_head"},
    NamePair{"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    NamePair{"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    NamePair{"blk.*.attn_k", "model.layers.*.self_attn.k_proj"},
    NamePair{"blk.*.attn_v", "model.layers.*.self_attn.v_proj"},
    NamePair{"blk.*.attn_qkv", "model.layers.*.self_attn.qkv_proj"},
    NamePair{"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    NamePair{"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm"},
    NamePair{"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm"},
    NamePair{"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    NamePair{"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    NamePair{"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    NamePair{"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
};

constexpr std::array kGemmaNames{
    NamePair{"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    NamePair{"blk.*.ffn_norm", "model.layers.*.pre_feedforward_layernorm"},
    NamePair{"blk.*.post_ffw_norm", "model.layers.*.post_feedforward_layernorm"},
};

constexpr std::array kOlmo2Names{
    NamePair{"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    NamePair{"blk.*.post_ffw_norm", "model.layers.*.post_feedforward_layernorm"},
};

constexpr std::array kPhi3Names{
    NamePair{"blk.*.ffn_up", "model.layers.*.mlp.gate_up_proj"},
};

constexpr std::array kQwen3MoeNames{
    NamePair{"blk.*.ffn_gate_inp", "model.layers.*.mlp.gate"},
};

constexpr std::array kGptOssNames{
    NamePair{"blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm"},
    NamePair{"blk.*.attn_sinks", "model.layers.*.self_attn.sinks"},
    NamePair{"blk.*.ffn_gate_inp", "model.layers.*.mlp.router"},
};

constexpr std::array kGpt2Names{
    NamePair{"token_embd", "transformer.wte"},
    NamePair{"position_embd", "transformer.wpe"},
    NamePair{"output_norm", "transformer.ln_f"},
    NamePair{"output", "lm_head"},
    NamePair{"blk.*.attn_norm", "transformer.h.*.ln_1"},
    NamePair{"blk.*.attn_qkv", "transformer.h.*.attn.c_attn"},
    NamePair{"blk.*.attn_output", "transformer.h.*.attn.c_proj"},
    NamePair{"blk.*.ffn_norm", "transformer.h.*.ln_2"},
    NamePair{"blk.*.ffn_up", "transformer.h.*.mlp.c_fc"},
    NamePair{"blk.*.ffn_down", "transformer.h.*.mlp.c_proj"},
};

constexpr std::array kBertNames{
    NamePair{"token_embd", "embeddings.word_embeddings"},
    NamePair{"position_embd", "embeddings.position_embeddings"},
    NamePair{"token_types", "embeddings.token_type_embeddings"},
    NamePair{"token_embd_norm", "embeddings.LayerNorm"},
    NamePair{"blk.*.attn_q", "encoder.layer.*.attention.self.query"},
    NamePair{"blk.*.attn_k", "encoder.layer.*.attention.self.key"},
    NamePair{"blk.*.attn_v", "encoder.layer.*.attention.self.value"},
    NamePair{"blk.*.attn_output", "encoder.layer.*.attention.output.dense"},
    NamePair{"blk.*.attn_output_norm", "encoder.layer.*.attention.output.LayerNorm"},
    NamePair{"blk.*.ffn_up", "encoder.layer.*.intermediate.dense"},
    NamePair{"blk.*.ffn_down", "encoder.layer.*.output.dense"},
    NamePair{"blk.*.layer_output_norm", "encoder.layer.*.output.LayerNorm"},
};

constexpr std::array kModernBertNames{
    NamePair{"token_embd", "embeddings.tok_embeddings"},
    NamePair{"token_embd_norm", "embeddings.norm"},
    NamePair{"output_norm", "final_norm"},
    NamePair{"blk.*.attn_norm", "layers.*.attn_norm"},
    NamePair{"blk.*.attn_qkv", "layers.*.attn.Wqkv"},
    NamePair{"blk.*.attn_output", "layers.*.attn.Wo"},
    NamePair{"blk.*.ffn_norm", "layers.*.mlp_norm"},
    NamePair{"blk.*.ffn_up", "layers.*.mlp.Wi"},
    NamePair{"blk.*.ffn_down", "layers.*.mlp.Wo"},
};

constexpr std::array kFamilies{
    GgufFamily{"llama", "llama", "LlamaForCausalLM", "silu", {}, true, true},
    GgufFamily{"qwen2", "qwen2", "Qwen2ForCausalLM", "silu", {}},
    GgufFamily{"qwen3", "qwen3", "Qwen3ForCausalLM", "silu", {}},
    GgufFamily{"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", "silu", kQwen3MoeNames},
    GgufFamily{"gemma2", "gemma2", "Gemma2ForCausalLM", "gelu_pytorch_tanh", kGemmaNames, true, false, 1},
    GgufFamily{"gemma3", "gemma3_text", "Gemma3ForCausalLM", "gelu_pytorch_tanh", kGemmaNames, true, false,
               1},
    GgufFamily{"phi3", "phi3", "Phi3ForCausalLM", "silu", kPhi3Names},
    GgufFamily{"smollm3", "smollm3", "SmolLM3ForCausalLM", "silu", {}, true, true},
    GgufFamily{"olmo2", "olmo2", "Olmo2ForCausalLM", "silu", kOlmo2Names},
    GgufFamily{"granite", "granite", "GraniteForCausalLM", "silu", {}, true, true},
    GgufFamily{"gpt-oss", "gpt_oss", "GptOssForCausalLM", "silu", kGptOssNames},
    GgufFamily{"gpt2", "gpt2", "GPT2LMHeadModel", "gelu_new", kGpt2Names, false, false, 0, true},
    GgufFamily{"bert", "bert", "BertModel", "gelu", kBertNames, false, false, 0, false, true},
    GgufFamily{"modern-bert", "modernbert", "ModernBertModel", "gelu", kModernBertNames, false, false, 0,
               false, true},
    GgufFamily{"gemma-embedding", "gemma3_text", "Gemma3TextModel", "gelu_pytorch_tanh", kGemmaNames, true,
               false, 1, false, true},
};

/// `name` under `pattern`, whose '*' is a number: what to put for the '*' of the other one.
std::optional<std::string_view> layer_of(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return name == pattern ? std::optional(std::string_view()) : std::nullopt;
  const std::string_view tail = pattern.substr(star + 1);
  if (name.size() <= pattern.size() - 1 || !name.starts_with(pattern.substr(0, star)) ||
      !name.ends_with(tail))
    return std::nullopt;
  const std::string_view number = name.substr(star, name.size() - pattern.size() + 1);
  const bool digits = std::ranges::all_of(number, [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? std::optional(number) : std::nullopt;
}

std::optional<std::string> translate(const GgufFamily& family, std::string_view name,
                                     std::string_view NamePair::*from, std::string_view NamePair::*to) {
  std::string_view suffix;
  for (const std::string_view s : {".weight", ".bias"})
    if (name.ends_with(s)) suffix = s;
  name.remove_suffix(suffix.size());
  const std::span<const NamePair> shared = family.decoder_names ? kDecoderNames : std::span<const NamePair>();
  for (const auto table : {family.names, shared}) {
    for (const NamePair& pair : table) {
      const auto layer = layer_of(name, pair.*from);
      if (!layer) continue;
      std::string out(pair.*to);
      if (const std::size_t star = out.find('*'); star != out.npos) out.replace(star, 1, *layer);
      return out + std::string(suffix);
    }
  }
  return std::nullopt;
}

const GgufFamily* find(std::string_view name, std::string_view GgufFamily::*member) {
  const auto* found = std::ranges::find(kFamilies, name, member);
  return found == kFamilies.end() ? nullptr : found;
}

}  // namespace

const GgufFamily* gguf_family(std::string_view architecture) {
  return find(architecture, &GgufFamily::architecture);
}

const GgufFamily* gguf_family_of_model_type(std::string_view model_type) {
  if (model_type == "mistral") return gguf_family("llama");  // as llama.cpp has it: the same network
  return find(model_type, &GgufFamily::model_type);
}

std::string known_gguf_architectures() {
  std::vector<std::string_view> names;
  names.reserve(kFamilies.size());
  for (const GgufFamily& family : kFamilies) names.push_back(family.architecture);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<std::string> to_hugging_face(const GgufFamily& family, std::string_view gguf) {
  // A bare parameter, not one of a module.
  if (family.architecture == "gpt-oss" && gguf.ends_with(".attn_sinks.weight"))
    gguf.remove_suffix(std::string_view(".weight").size());
  return translate(family, gguf, &NamePair::gguf, &NamePair::hugging_face);
}

std::optional<std::string> to_gguf(const GgufFamily& family, std::string_view hugging_face) {
  auto name = translate(family, hugging_face, &NamePair::hugging_face, &NamePair::gguf);
  if (name && name->ends_with(".attn_sinks")) *name += ".weight";
  return name;
}

}  // namespace caldera::detail
