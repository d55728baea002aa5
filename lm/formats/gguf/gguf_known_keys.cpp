#include "lm/formats/gguf/gguf_known_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lm/base/json_file.h"
#include "lm/formats/gguf/gguf_keys.h"

namespace caldera::detail {
namespace {

/// Read beside kGgufKeys, or checked below.
constexpr std::array<std::string_view, 22> kRead{"attention.key_length",
                                                 "attention.value_length",
                                                 "attention.sliding_window",
                                                 "attention.sliding_window_pattern",
                                                 "attention.layer_norm_epsilon",
                                                 "attention.causal",
                                                 "expert_count",
                                                 "expert_feed_forward_length",
                                                 "pooling_type",
                                                 "rope.dimension_count",
                                                 "rope.freq_base",
                                                 "rope.freq_base_swa",
                                                 "rope.scale_linear",
                                                 "rope.scaling.type",
                                                 "rope.scaling.factor",
                                                 "rope.scaling.original_context_length",
                                                 "rope.scaling.attn_factor",
                                                 "rope.scaling.yarn_beta_fast",
                                                 "rope.scaling.yarn_beta_slow",
                                                 "rope.scaling.yarn_ext_factor",
                                                 "rope.scaling.yarn_attn_factor",
                                                 "rope.scaling.yarn_log_multiplier"};

/// Of names, of layouts that are gone, of heads that are passed over; and of modules that are refused by
/// their tensors.
constexpr std::array<std::string_view, 8> kHarmless{
    "vocab_size",      "tensor_data_layout", "rope.scaling.finetuned", "classifier.output_labels",
    "dense_2_feat_in", "dense_2_feat_out",   "dense_3_feat_in",        "dense_3_feat_out"};

bool is_off(const GgufValue& value) {
  if (value.is_list()) return value.count() == 0;
  if (const auto flag = value.boolean()) return !*flag;
  if (const auto text = value.string()) return text->empty();
  return value.number() == 0.0;
}

bool is_known(std::string_view name) {
  return std::ranges::find(kRead, name) != kRead.end() ||
         std::ranges::find(kHarmless, name) != kHarmless.end() ||
         std::ranges::any_of(kGgufKeys, [&](const GgufKey& row) { return name == row.key; });
}

/// Whether positions look at later ones.
void check_causal(const GgufFile& file, const std::string& key, const GgufFamily& family) {
  const auto causal = file.boolean(key);
  if (causal && *causal == family.bidirectional)
    file.fail(key, fmt::format("is {}, which is not how {} is computed", *causal, family.architecture));
}

}  // namespace

void check_keys(const GgufFile& file, const GgufFamily& family) {
  const std::string prefix = std::string(family.architecture) + ".";
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(prefix) || is_known(std::string_view(key).substr(prefix.size())) || is_off(value))
      continue;
    file.fail(key, "is not known: it may change what the model computes");
  }
  check_causal(file, prefix + "attention.causal", family);
  // What llama.cpp's yarn has beside its factor, at the values that change nothing.
  for (const auto& [name, usual] : {std::pair{"yarn_ext_factor", 1.0}, std::pair{"yarn_attn_factor", 1.0},
                                    std::pair{"yarn_log_multiplier", 0.0}}) {
    const std::string key = prefix + "rope.scaling." + name;
    if (const auto value = file.number(key); value && *value != usual && *value >= 0)
      file.fail(key, fmt::format("is {}, which is not supported (supported: {})", *value, usual));
  }
}

}  // namespace caldera::detail
