// OLMo 2 and 3: Hugging Face's Olmo2ForCausalLM and Olmo3ForCausalLM. Norms behind both parts of a layer and
// none before them; an RMSNorm of queries and of keys over all heads together. In OLMo 3 three layers of four
// slide; only the others have stretched frequencies.
#include "lm/models/decoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

std::unique_ptr<CausalLM> make_olmo2(const detail::JsonFields& fields, ModelConfig config, bool sliding,
                                     Device device, std::uint64_t seed) {
  config.rms_norm_eps = 1e-5;
  if (sliding) {
    config.rope_theta = 5e5;
    config.sliding_window = 4096;
  }
  detail::read_config(fields, config,
                      {.own = {{"attention_bias", "false"}}, .sliding = sliding, .local_rope = sliding});
  if (sliding) {
    if (!config.local_rope) config.local_rope = RopeParameters{config.rope_theta};
    detail::set_layers(fields, config, [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
  }
  const bool bias = fields.boolean("attention_bias").value_or(false);
  DecoderTraits traits;
  traits.biases = {bias, bias, bias, bias};
  traits.norms = {"", "post_attention_layernorm", "", "post_feedforward_layernorm"};
  traits.head_norm = DecoderTraits::HeadNorm::all_heads;
  return make_decoder(config, traits, device, seed);
}

}  // namespace

detail::ModelFamily olmo2_family() {
  return {
      {"Olmo2ForCausalLM", "olmo2"},
      [](const detail::JsonFields& fields, Device device, std::uint64_t seed) -> std::unique_ptr<CausalLM> {
        ModelConfig config;
        config.architecture = "Olmo2ForCausalLM";
        config.model_type = "olmo2";
        return make_olmo2(fields, config, false, device, seed);
      }};
}

detail::ModelFamily olmo3_family() {
  return {
      {"Olmo3ForCausalLM", "olmo3"},
      [](const detail::JsonFields& fields, Device device, std::uint64_t seed) -> std::unique_ptr<CausalLM> {
        ModelConfig config;
        config.architecture = "Olmo3ForCausalLM";
        config.model_type = "olmo3";
        return make_olmo2(fields, config, true, device, seed);
      }};
}

}  // namespace caldera
