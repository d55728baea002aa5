#include "lm/formats/gguf/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_keys.h"
#include "lm/formats/gguf/gguf_known_keys.h"
#include "lm/formats/gguf/gguf_rope.h"

namespace caldera::detail {
namespace {

using Json = nlohmann::ordered_json;

/// Reads the keys of one file into one configuration.
class Translator {
 public:
  Translator(const GgufFile& file, const GgufFamily& family) : file_(file), family_(family) {}

  Json translate() {
    check_keys(file_, family_);
    json_["architectures"] = {family_.hugging_face};
    json_["model_type"] = family_.model_type;
    for (const GgufKey& row : kGgufKeys) shared(row);
    widths();
    add_rope(json_, file_, family_);
    vocabulary();
    json_["hidden_act"] = family_.hidden_act;
    own();
    biases();
    return std::move(json_);
  }

 private:
  std::string key(const char* name) const { return fmt::format("{}.{}", family_.architecture, name); }
  std::optional<std::int64_t> integer(const char* name) const { return file_.integer(key(name)); }
  const GgufTensor* tensor(std::string_view name) const {
    const auto found = std::ranges::find(file_.tensors(), name, &GgufTensor::name);
    return found == file_.tensors().end() ? nullptr : &*found;
  }

  void shared(const GgufKey& row) {
    const std::string full = key(row.key);
    const GgufValue* value = file_.find(full);
    if (value == nullptr) {
      if (row.required) file_.fail(full, "is missing");
      return;
    }
    if (row.kind == GgufKeyKind::number)
      json_[row.field] = *file_.number(full);
    else if (row.kind == GgufKeyKind::per_layer)
      json_[row.field] = *file_.integer_of_layers(full);
    else
      json_[row.field] = *file_.integer(full);
  }

  void widths() {
    // Left out, it is not what the family has by default elsewhere.
    if (!json_.contains("num_key_value_heads")) json_["num_key_value_heads"] = json_["num_attention_heads"];
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
    for (const GgufTokenKey& row : kGgufTokenKeys) add_token(row);
  }

  /// Several keys of one field make a list.
  void add_token(const GgufTokenKey& row) {
    const auto id = file_.integer(row.key);
    if (!id) return;
    if (!json_.contains(row.field)) {
      json_[row.field] = *id;
      return;
    }
    Json ids = json_[row.field].is_array() ? json_[row.field] : Json::array({json_[row.field]});
    if (std::ranges::find(ids, Json(*id)) != ids.end()) return;
    ids.push_back(*id);
    json_[row.field] = std::move(ids);
  }

  bool has_bias(const char* module) const { return tensor(fmt::format("blk.0.{}.bias", module)) != nullptr; }

  /// Which layers slide: the key says it one by one, or after how many comes one that does not; else the
  /// family does.
  std::vector<std::string> layer_types(std::int64_t full_every) const {
    const std::string pattern = key("attention.sliding_window_pattern");
    const GgufValue* value = file_.find(pattern);
    const auto listed = value == nullptr ? std::nullopt : value->booleans();
    if (!listed) full_every = file_.integer(pattern).value_or(full_every);
    if (full_every < 1) file_.fail(pattern, "must be positive");
    const auto layers = std::min(json_["num_hidden_layers"].get<std::int64_t>(), kMostLayers);
    if (listed && static_cast<std::int64_t>(listed->size()) != layers)
      file_.fail(pattern, fmt::format("has {} values for {} layers", listed->size(), layers));
    std::vector<std::string> types;
    for (std::int64_t i = 0; i < layers; ++i) {
      const bool slides = listed ? (*listed)[static_cast<std::size_t>(i)] : (i + 1) % full_every != 0;
      types.emplace_back(slides ? "sliding_attention" : "full_attention");
    }
    return types;
  }

  /// Biases that the family may have: files say it by having them.
  void biases() {
    constexpr std::array<std::string_view, 9> kOfAttention{
        "llama", "granite", "smollm3", "qwen3", "qwen3moe", "gemma2", "gemma3", "gemma-embedding", "olmo2"};
    const std::string_view name = family_.architecture;
    if (std::ranges::find(kOfAttention, name) != kOfAttention.end())
      json_["attention_bias"] = has_bias("attn_q");
    if (name == "llama" || name == "granite" || name == "smollm3") json_["mlp_bias"] = has_bias("ffn_down");
    if (name == "gpt-oss") json_["attention_bias"] = has_bias("attn_q");
    if (name == "modern-bert") {
      json_["attention_bias"] = has_bias("attn_qkv");
      json_["mlp_bias"] = has_bias("ffn_up");
      json_["norm_bias"] = tensor("output_norm.bias") != nullptr;
    }
  }

  /// What llama.cpp derives from the architecture's name, or keeps under keys of the family's own.
  void own() {
    const std::string_view name = family_.architecture;
    if (name != "qwen3moe" && name != "gpt-oss" && integer("expert_count").value_or(0) > 0)
      file_.fail(key("expert_count"),
                 "says that layers have experts, as Mixtral's, which the family does not compute");
    // llama.cpp leaves out the rotation of every fourth layer, whatever the file says.
    if (name == "smollm3") json_["no_rope_layer_interval"] = 4;
    if (name == "qwen3moe") {
      json_["num_experts"] = required("expert_count");
      json_["moe_intermediate_size"] = required("expert_feed_forward_length");
      json_["decoder_sparse_step"] = 1;
      json_["norm_topk_prob"] = true;
    }
    if (name == "gemma2" || name == "gemma3" || name == "gemma-embedding") gemma();
    if (name == "gemma-embedding") json_["use_bidirectional_attention"] = true;
    if (name == "modern-bert") modern_bert();
    if (name == "gpt-oss") {
      json_["num_local_experts"] = required("expert_count");
      json_["intermediate_size"] = required("expert_feed_forward_length");
      json_["layer_types"] = layer_types(2);
    }
    if (name == "llama" &&
        json_.contains("sliding_window")) {  // Mistral's, which has no architecture of its own
      json_["architectures"] = {"MistralForCausalLM"};
      json_["model_type"] = "mistral";
    }
    if (name == "olmo2" && json_.contains("sliding_window")) {  // files of OLMo 3 have the architecture of 2
      json_["architectures"] = {"Olmo3ForCausalLM"};
      json_["model_type"] = "olmo3";
      json_["layer_types"] = layer_types(4);
    }
    // Where the key is missing, llama.cpp scales scores as others do; Granite's class does not scale them.
    if (name == "granite" && !json_.contains("attention_multiplier"))
      json_["attention_multiplier"] = 1 / std::sqrt(static_cast<double>(head_dim()));
    if (name == "gpt2") gpt2();
    if (name == "bert") {
      json_["layer_norm_eps"] = number("attention.layer_norm_epsilon");
      const GgufTensor* types = tensor("token_types.weight");
      if (types != nullptr && types->shape.rank() == 2) json_["type_vocab_size"] = types->shape[0];
    }
  }

  std::int64_t head_dim() const {
    const std::int64_t heads = json_["num_attention_heads"];
    return json_.value("head_dim",
                       json_["hidden_size"].get<std::int64_t>() / std::max<std::int64_t>(heads, 1));
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
    if (const auto scale = file_.number(key("attention.scale")); scale && *scale > 0) {
      json_["query_pre_attn_scalar"] = std::round(1 / (*scale * *scale));
      json_.erase("attention_multiplier");
    }
    json_["layer_types"] = layer_types(family_.architecture == "gemma2" ? 2 : 6);
  }

  void move(const char* from, const char* to) {
    json_[to] = json_[from];
    json_.erase(from);
  }

  void modern_bert() {
    json_["norm_eps"] = number("attention.layer_norm_epsilon");
    json_["local_attention"] = required("attention.sliding_window");
    json_.erase("sliding_window");
    json_["global_attn_every_n_layers"] = integer("attention.sliding_window_pattern").value_or(3);
    // llama.cpp takes the frequencies of layers that look everywhere where the others have none of their own.
    const double theta = number("rope.freq_base");
    json_["global_rope_theta"] = theta;
    json_["local_rope_theta"] = file_.number(key("rope.freq_base_swa")).value_or(theta);
    for (const char* other : {"rope_theta", "rope_local_base_freq"}) json_.erase(other);
    move("hidden_act", "hidden_activation");
  }

  void gpt2() {
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
