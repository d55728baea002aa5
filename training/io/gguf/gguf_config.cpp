#include "training/io/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/tensor/error.h"
#include "training/io/gguf/gguf_rope.h"
#include "training/io/json_file.h"

namespace caldera::detail {
namespace {

using Json = nlohmann::ordered_json;

enum class Kind : std::uint8_t { integer, per_layer, number };

/// A key below the architecture's name, and the field of config.json that says the same.
struct KeyRow {
  const char* key;
  const char* field;
  Kind kind;
  bool required = false;
};

// llama.cpp's gguf-py/gguf/constants.py names the keys.
constexpr std::array kKeys{
    KeyRow{"embedding_length", "hidden_size", Kind::integer, true},
    KeyRow{"feed_forward_length", "intermediate_size", Kind::per_layer},
    KeyRow{"block_count", "num_hidden_layers", Kind::integer, true},
    KeyRow{"attention.head_count", "num_attention_heads", Kind::per_layer, true},
    KeyRow{"attention.head_count_kv", "num_key_value_heads", Kind::per_layer},
    KeyRow{"context_length", "max_position_embeddings", Kind::integer, true},
    KeyRow{"attention.layer_norm_rms_epsilon", "rms_norm_eps", Kind::number},
    KeyRow{"attn_logit_softcapping", "attn_logit_softcapping", Kind::number},
    KeyRow{"final_logit_softcapping", "final_logit_softcapping", Kind::number},
    KeyRow{"expert_used_count", "num_experts_per_tok", Kind::integer},
    KeyRow{"attention.scale", "attention_multiplier", Kind::number},
    KeyRow{"embedding_scale", "embedding_multiplier", Kind::number},
    KeyRow{"residual_scale", "residual_multiplier", Kind::number},
    KeyRow{"logit_scale", "logits_scaling", Kind::number},
};

/// Reads the keys of one file into one configuration.
class Translator {
 public:
  Translator(const GgufFile& file, const GgufFamily& family) : file_(file), family_(family) {}

  Json translate() {
    json_["architectures"] = {family_.hugging_face};
    json_["model_type"] = family_.model_type;
    for (const KeyRow& row : kKeys) shared(row);
    widths();
    add_rope(json_, file_, family_);
    vocabulary();
    json_["hidden_act"] = family_.hidden_act;
    own();
    return std::move(json_);
  }

 private:
  std::string key(const char* name) const { return fmt::format("{}.{}", family_.architecture, name); }
  std::optional<std::int64_t> integer(const char* name) const { return file_.integer(key(name)); }
  const GgufTensor* tensor(std::string_view name) const {
    const auto found = std::ranges::find(file_.tensors(), name, &GgufTensor::name);
    return found == file_.tensors().end() ? nullptr : &*found;
  }

  void shared(const KeyRow& row) {
    const std::string full = key(row.key);
    const GgufValue* value = file_.find(full);
    if (value == nullptr) {
      if (row.required) file_.fail(full, "is missing");
      return;
    }
    if (row.kind == Kind::number)
      json_[row.field] = *file_.number(full);
    else if (row.kind == Kind::per_layer && value->is_list())
      json_[row.field] = same_for_all_layers(full, *value);
    else
      json_[row.field] = *file_.integer(full);
  }

  std::int64_t same_for_all_layers(const std::string& full, const GgufValue& value) const {
    const auto list = value.integers();
    if (!list || list->empty()) file_.fail(full, "must be an integer, or a list of them");
    if (std::ranges::any_of(*list, [&](std::int64_t v) { return v != list->front(); }))
      file_.fail(full, "differs from layer to layer, which is not supported");
    return list->front();
  }

  void widths() {
    if (const auto head = integer("attention.key_length")) {
      json_["head_dim"] = *head;
      if (integer("attention.value_length").value_or(*head) != *head)
        file_.fail(key("attention.value_length"), "differs from that of the keys, which is not supported");
    }
    if (const auto window = integer("attention.sliding_window"); window && *window > 0)
      json_["sliding_window"] = *window;
  }

  void vocabulary() {
    const GgufTensor* embeddings = tensor("token_embd.weight");
    if (embeddings == nullptr || embeddings->shape.rank() != 2)
      throw FileError(fmt::format("{}: there is no matrix token_embd.weight", file_.path().string()));
    json_["vocab_size"] = embeddings->shape[0];
    json_["tie_word_embeddings"] = tensor("output.weight") == nullptr;
    token("bos_token_id", {"tokenizer.ggml.bos_token_id"});
    token("eos_token_id",
          {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"});
    token("pad_token_id", {"tokenizer.ggml.padding_token_id"});
  }

  void token(const char* field, std::initializer_list<const char*> keys) {
    std::vector<std::int64_t> ids;
    for (const char* k : keys) {
      const auto id = file_.integer(k);
      if (id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
    }
    if (ids.size() == 1)
      json_[field] = ids.front();
    else if (!ids.empty())
      json_[field] = ids;
  }

  bool has_bias(const char* module) const { return tensor(fmt::format("blk.0.{}.bias", module)) != nullptr; }

  std::vector<std::string> layer_types(std::int64_t full_every) const {
    std::vector<std::string> types;
    for (std::int64_t i = 0; i < json_["num_hidden_layers"].get<std::int64_t>() && i < kMostLayers; ++i)
      types.emplace_back((i + 1) % full_every == 0 ? "full_attention" : "sliding_attention");
    return types;
  }

  /// What llama.cpp derives from the architecture's name, or keeps under keys of the family's own.
  void own() {
    const std::string_view name = family_.architecture;
    if (name == "llama" || name == "granite" || name == "smollm3") {
      if (integer("expert_count").value_or(0) > 0)
        file_.fail(key("expert_count"), "says that layers have experts (Mixtral), which is not supported");
      json_["attention_bias"] = has_bias("attn_q");
      json_["mlp_bias"] = has_bias("ffn_down");
    }
    // llama.cpp leaves out the rotation of every fourth layer, whatever the file says.
    if (name == "smollm3") json_["no_rope_layer_interval"] = 4;
    if (name == "qwen3moe") {
      json_["num_experts"] = required("expert_count");
      json_["moe_intermediate_size"] = required("expert_feed_forward_length");
      json_["decoder_sparse_step"] = 1;
      json_["norm_topk_prob"] = true;
    }
    if (name == "gemma2" || name == "gemma3") gemma();
    if (name == "gpt-oss") {
      json_["num_local_experts"] = required("expert_count");
      json_["intermediate_size"] = required("expert_feed_forward_length");
      json_["attention_bias"] = true;
      json_["layer_types"] = layer_types(2);
    }
    if (name == "gpt2") gpt2();
    if (name == "bert") {
      json_["layer_norm_eps"] = number("attention.layer_norm_epsilon");
      const GgufTensor* types = tensor("token_types.weight");
      if (types != nullptr && types->shape.rank() == 2) json_["type_vocab_size"] = types->shape[0];
    }
  }

  void gemma() {
    json_["hidden_activation"] = family_.hidden_act;
    const std::int64_t layers = json_["num_hidden_layers"];
    const std::int64_t heads = json_["num_attention_heads"];
    const std::int64_t head = json_.value("head_dim", std::int64_t{0});
    // The 27B models scale by the width a head would have if the heads made up the hidden size; llama.cpp
    // knows them by their number of layers.
    const bool largest = layers == (family_.architecture == "gemma2" ? 46 : 62);
    json_["query_pre_attn_scalar"] =
        largest && heads > 0 ? json_["hidden_size"].get<std::int64_t>() / heads : head;
    const std::int64_t pattern =
        integer("attention.sliding_window_pattern").value_or(family_.architecture == "gemma2" ? 2 : 6);
    if (pattern < 1) file_.fail(key("attention.sliding_window_pattern"), "must be positive");
    json_["layer_types"] = layer_types(pattern);
  }

  void gpt2() {
    const auto move = [&](const char* from, const char* to) {
      json_[to] = json_[from];
      json_.erase(from);
    };
    move("hidden_size", "n_embd");
    move("num_hidden_layers", "n_layer");
    move("num_attention_heads", "n_head");
    move("max_position_embeddings", "n_positions");
    move("hidden_act", "activation_function");
    if (json_.contains("intermediate_size")) move("intermediate_size", "n_inner");
    json_["layer_norm_epsilon"] = number("attention.layer_norm_epsilon");
  }

  std::int64_t required(const char* name) const {
    const auto value = integer(name);
    if (!value) file_.fail(key(name), "is missing");
    return *value;
  }
  double number(const char* name) const {
    const auto value = file_.number(key(name));
    if (!value) file_.fail(key(name), "is missing");
    return *value;
  }

  // What a family's reader will refuse anyway must not fill the memory first.
  static constexpr std::int64_t kMostLayers = 10'000;

  const GgufFile& file_;
  const GgufFamily& family_;
  Json json_;
};

}  // namespace

const GgufFamily& family_of(const GgufFile& file) {
  const auto type = file.string("general.type");
  if (type && *type != "model")
    file.fail("general.type", fmt::format("is '{}': this file is no model", printable(*type)));
  const auto name = file.string("general.architecture");
  if (!name) file.fail("general.architecture", "is missing");
  const GgufFamily* family = gguf_family(*name);
  if (family == nullptr)
    file.fail("general.architecture", fmt::format("is '{}', which is not supported (supported: {})",
                                                  printable(*name), known_gguf_architectures()));
  return *family;
}

std::string gguf_config(const GgufFile& file, const GgufFamily& family) {
  return Translator(file, family).translate().dump(2) + "\n";
}

bool is_rope_factors(std::string_view gguf_name) {
  return gguf_name == "rope_freqs.weight" || gguf_name == "rope_factors_long.weight" ||
         gguf_name == "rope_factors_short.weight";
}

}  // namespace caldera::detail
