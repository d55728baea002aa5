#include "lm/formats/config/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera {
namespace {

// Far above any model, far below where a product of two of them could overflow.
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxLayers = 10'000;
constexpr std::int64_t kMaxVocabulary = 1 << 24;
constexpr std::int64_t kMaxPositions = 1 << 28;

constexpr std::string_view kSilu = "silu";

}  // namespace

std::int64_t ModelConfig::max_positions() const {
  const std::int64_t positions = rope_scaling.usable_positions(max_position_embeddings) - reserved_positions;
  if (!local_rope) return positions;
  return std::min(positions, local_rope->scaling.usable_positions(max_position_embeddings));
}

void ModelConfig::validate(std::span<const std::string_view> activations) const {
  if (activations.empty()) activations = {&kSilu, 1};
  const auto fail = [](const char* field, const std::string& problem) {
    throw ValueError(fmt::format("config: field '{}' {}", field, problem));
  };
  const auto in_range = [&](const char* field, std::int64_t value, std::int64_t max) {
    if (value < 1 || value > max) fail(field, fmt::format("is {}, but must lie in 1..{}", value, max));
  };
  const auto token = [&](const char* field, std::int64_t id) {
    if (id < 0 || id >= vocab_size) {
      fail(field, fmt::format("is {}, outside of the vocabulary of {}", id, vocab_size));
    }
  };
  in_range("hidden_size", hidden_size, kMaxWidth);
  in_range("intermediate_size", intermediate_size, kMaxWidth * 8);
  in_range("num_hidden_layers", num_hidden_layers, kMaxLayers);
  in_range("num_attention_heads", num_attention_heads, kMaxWidth);
  in_range("num_key_value_heads", num_key_value_heads, kMaxWidth);
  in_range("head_dim", head_dim, kMaxWidth);
  in_range("vocab_size", vocab_size, kMaxVocabulary);
  in_range("max_position_embeddings", max_position_embeddings, kMaxPositions);
  if (num_attention_heads % num_key_value_heads != 0) {
    fail("num_key_value_heads", fmt::format("is {}, which does not divide num_attention_heads ({})",
                                            num_key_value_heads, num_attention_heads));
  }
  if (head_dim % 2 != 0) fail("head_dim", fmt::format("is {}, but rotary embedding needs it even", head_dim));
  if (num_attention_heads * head_dim > kMaxWidth * 8) {
    fail("num_attention_heads",
         fmt::format("times head_dim is {}, which is absurd", num_attention_heads * head_dim));
  }
  if (!(rms_norm_eps > 0 && rms_norm_eps < 1)) {
    fail("rms_norm_eps", fmt::format("is {}, but must lie between 0 and 1", rms_norm_eps));
  }
  if (!(rope_theta > 0 && std::isfinite(rope_theta))) {
    fail("rope_theta", fmt::format("is {}, but must be positive", rope_theta));
  }
  if (!(initializer_range >= 0 && std::isfinite(initializer_range))) {
    fail("initializer_range", fmt::format("is {}, but must not be negative", initializer_range));
  }
  if (std::ranges::find(activations, hidden_act) == activations.end()) {
    fail("hidden_act", fmt::format("is '{}', which is not supported (supported: {})",
                                   detail::printable(hidden_act), fmt::join(activations, ", ")));
  }
  if (bos_token_id) token("bos_token_id", *bos_token_id);
  for (const auto id : eos_token_ids) token("eos_token_id", id);
}

}  // namespace caldera
