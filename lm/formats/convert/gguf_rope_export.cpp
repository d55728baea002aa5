#include "lm/formats/convert/gguf_rope_export.h"

#include <cmath>
#include <functional>

#include "lm/formats/gguf/gguf_rope.h"

namespace caldera::detail {
namespace {

/// What is written of one set of frequencies; `fail` says of which field.
class RopeWriter {
 public:
  RopeWriter(RopeKeys& keys, const ModelConfig& config, const std::function<void(const std::string&)>& fail)
      : keys_(keys), rope_(config.rope_scaling), config_(config), fail_(fail) {}

  void write() {
    keys_.theta = config_.rope_theta;
    keys_.turned = static_cast<std::int64_t>(
        std::floor(static_cast<double>(config_.head_dim) * rope_.partial_rotary_factor));
    if (rope_.llama_4_scaling_beta != 0) fail_("has a llama_4_scaling_beta");
    const std::int64_t most = config_.max_position_embeddings;
    switch (rope_.type) {
      case RopeType::plain:
        return;
      case RopeType::dynamic:
        return fail_("is of type dynamic");
      case RopeType::linear:
        keys_.type = "linear";
        keys_.factor = rope_.stretch(most);
        keys_.original = rope_.original_max_position_embeddings;
        return;
      case RopeType::yarn:
        return yarn();
      case RopeType::llama3:
        return llama3();
      case RopeType::longrope:
        return longrope();
    }
  }

 private:
  void yarn() {
    keys_.type = "yarn";
    keys_.factor = rope_.stretch(config_.max_position_embeddings);
    keys_.original = rope_.original_positions(config_.max_position_embeddings);
    keys_.beta_fast = rope_.beta_fast;
    keys_.beta_slow = rope_.beta_slow;
    if (rope_.mscale || rope_.mscale_all_dim) fail_("of type yarn has an mscale");
    if (rope_.attention_factor) fail_("of type yarn has an attention_factor");
    if (!rope_.truncate) fail_("of type yarn has a truncate that is false");
  }

  void llama3() {
    const auto exact =
        llama3_factors(static_cast<std::size_t>(*keys_.turned / 2), config_.rope_theta,
                       rope_.factor.value_or(1), rope_.low_freq_factor, rope_.high_freq_factor,
                       static_cast<double>(rope_.original_positions(config_.max_position_embeddings)));
    keys_.factors.emplace_back("rope_freqs.weight", std::vector<float>(exact.begin(), exact.end()));
  }

  void longrope() {
    const auto floats = [](const std::vector<double>& values) {
      return std::vector<float>(values.begin(), values.end());
    };
    keys_.factors.emplace_back("rope_factors_long.weight", floats(rope_.long_factor));
    keys_.factors.emplace_back("rope_factors_short.weight", floats(rope_.short_factor));
    const std::int64_t original = rope_.original_positions(config_.max_position_embeddings);
    const double stretch = rope_.stretch(config_.max_position_embeddings);
    keys_.original = original;
    keys_.attention_factor = rope_.attention_factor.value_or(
        stretch <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / std::log(static_cast<double>(original))));
  }

  RopeKeys& keys_;
  const RopeScaling& rope_;
  const ModelConfig& config_;
  const std::function<void(const std::string&)>& fail_;
};

}  // namespace

RopeKeys rope_keys(const JsonFields& fields, const ModelConfig& config) {
  const std::function<void(const std::string&)> fail = [&](const std::string& problem) {
    fields.fail(fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                problem + ", which GGUF files cannot say");
  };
  RopeKeys keys;
  RopeWriter(keys, config, fail).write();
  if (config.local_rope) {
    if (config.local_rope->scaling != RopeScaling{}) fail("scales the frequencies of layers that slide");
    keys.local_theta = config.local_rope->theta;
  }
  return keys;
}

}  // namespace caldera::detail
