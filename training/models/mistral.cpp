// Mistral, and Ministral 3: Hugging Face's MistralForCausalLM and Ministral3ForCausalLM. Llama whose layers
// all slide where there is a sliding_window; Ministral 3 grows queries with their position
// (llama_4_scaling_beta).
#include "training/models/decoder.h"
#include "training/models/family.h"

namespace caldera {
namespace {

std::unique_ptr<CausalLM> make(const detail::JsonFields& fields, ModelConfig config, Device device,
                               std::uint64_t seed) {
  detail::read_config(fields, config, {.sliding = true});
  const bool sliding = config.sliding_window.has_value();
  detail::set_layers(fields, config, [&](std::int64_t /*layer*/) { return sliding; });
  return make_decoder(config, {}, device, seed);
}

}  // namespace

detail::ModelFamily mistral_family() {
  return {
      {"MistralForCausalLM", "mistral"},
      [](const detail::JsonFields& fields, Device device, std::uint64_t seed) -> std::unique_ptr<CausalLM> {
        ModelConfig config;
        config.architecture = "MistralForCausalLM";
        config.model_type = "mistral";
        config.max_position_embeddings = 131072;
        // Where the field is not even null, MistralConfig has this default.
        if (!fields.names_field("sliding_window")) config.sliding_window = 4096;
        return make(fields, config, device, seed);
      }};
}

detail::ModelFamily ministral3_family() {
  return {
      {"Ministral3ForCausalLM", "ministral3"},
      [](const detail::JsonFields& fields, Device device, std::uint64_t seed) -> std::unique_ptr<CausalLM> {
        ModelConfig config;
        config.architecture = "Ministral3ForCausalLM";
        config.model_type = "ministral3";
        config.max_position_embeddings = 262144;
        config.rms_norm_eps = 1e-5;
        config.rope_theta = 1e6;
        return make(fields, config, device, seed);
      }};
}

}  // namespace caldera
