// What a configuration may say and GGUF files of its family cannot: llama.cpp takes it from the architecture.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lm/formats/convert/gguf_export.h"
#include "lm/formats/gguf/gguf_keys.h"

namespace caldera::detail {
namespace {

class Limits {
 public:
  explicit Limits(const GgufExport& model)
      : fields_(model.fields),
        config_(model.config),
        family_(model.family),
        name_(model.family.architecture) {}

  void check() const {
    activation();
    biases();
    windows();
    if (name_ == "gemma2" || name_ == "gemma3") gemma();
    if (name_ == "smollm3") rotated_layers();
    ends_of_texts();
  }

 private:
  [[noreturn]] void refuse(const char* field, const std::string& what) const {
    fields_.fail(field, fmt::format("{}, which GGUF files of {} cannot say", what, name_));
  }

  void activation() const {
    // gelu_new is the same function under an older name.
    const std::string& given = config_.hidden_act == "gelu_new" ? "gelu_pytorch_tanh" : config_.hidden_act;
    if (given != family_.hidden_act)
      refuse(fields_.has("hidden_activation") ? "hidden_activation" : "hidden_act",
             fmt::format("is '{}'", config_.hidden_act));
  }

  /// llama.cpp loads biases of these architectures where files have them.
  void biases() const {
    constexpr std::array<std::string_view, 2> kWithBiases{"llama", "granite"};
    if (std::ranges::find(kWithBiases, name_) != kWithBiases.end()) return;
    for (const char* field : {"attention_bias", "mlp_bias"})
      if (fields_.boolean(field).value_or(false)) refuse(field, "is true");
  }

  void windows() const {
    const bool any = std::ranges::any_of(config_.layers, &LayerConfig::sliding);
    if (any && (name_ == "qwen2" || name_ == "qwen3" || name_ == "smollm3"))
      refuse("use_sliding_window", "is true");
  }

  void gemma() const {
    const std::int64_t layers = config_.num_hidden_layers;
    const bool largest = layers == (name_ == "gemma2" ? 46 : 62);
    const std::int64_t derived =
        largest ? config_.hidden_size / config_.num_attention_heads : config_.head_dim;
    if (fields_.number("query_pre_attn_scalar") != static_cast<double>(derived))
      refuse("query_pre_attn_scalar", fmt::format("is not {}", derived));
    const std::int64_t full_every = name_ == "gemma2" ? 2 : 6;
    for (std::int64_t i = 0; i < layers; ++i)
      if (config_.layer(i).sliding != ((i + 1) % full_every != 0))
        refuse(fields_.has("layer_types") ? "layer_types" : "sliding_window_pattern",
               fmt::format("does not make every layer but each {}. slide", full_every));
    // Where the keys are missing, llama.cpp has the family's usual numbers.
    for (const char* field : {"attn_logit_softcapping", "final_logit_softcapping"})
      if (name_ == "gemma2" && !fields_.has(field)) refuse(field, "is null");
    if (name_ == "gemma3" && fields_.has("attn_logit_softcapping"))
      refuse("attn_logit_softcapping", "is set");
  }

  void rotated_layers() const {
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i)
      if (config_.layer(i).rotary != ((i + 1) % 4 != 0))
        refuse(fields_.has("no_rope_layers") ? "no_rope_layers" : "no_rope_layer_interval",
               "does not leave out the rotation of every fourth layer");
  }

  void ends_of_texts() const {
    const auto keys = std::ranges::count_if(kGgufTokenKeys, [](const GgufTokenKey& row) {
      return std::string_view(row.field) == "eos_token_id";
    });
    const std::vector<std::int64_t> ids = fields_.integers("eos_token_id");
    if (static_cast<std::ptrdiff_t>(ids.size()) > keys)
      refuse("eos_token_id", fmt::format("has {} ids, more than {}", ids.size(), keys));
  }

  const JsonFields& fields_;
  const ModelConfig& config_;
  const GgufFamily& family_;
  std::string_view name_;
};

}  // namespace

void refuse_what_gguf_cannot_say(const GgufExport& model) { Limits(model).check(); }

}  // namespace caldera::detail
