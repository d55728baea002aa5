// Mistral, and Ministral 3: Hugging Face's MistralForCausalLM and Ministral3ForCausalLM. Llama whose layers
// all slide where there is a sliding_window; Ministral 3 grows queries with their position
// (llama_4_scaling_beta).
#include "lm/models/decoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

std::unique_ptr<CausalLM> make_mistral(const detail::JsonFields& fields, ModelConfig config, Device device,
                                       std::uint64_t seed) {
  detail::read_config(fields, config, {.sliding = true, .scales_queries = config.model_type == "ministral3"});
  detail::set_equal_layers(fields, config);
  return make_decoder(config, {}, device, seed);
}

/// What Ministral3Config has where the file says nothing of its frequencies.
void set_default_rope(const detail::JsonFields& fields, ModelConfig& config) {
  config.rope_theta = 1e6;
  if (fields.number("rope_theta").value_or(config.rope_theta) != config.rope_theta)
    fields.fail("rope_theta", "is not 1000000, which it is where there are no rope_parameters; give them");
  RopeScaling& rope = config.rope_scaling;
  rope.type = RopeType::yarn;
  rope.factor = 16;
  rope.original_max_position_embeddings = 16384;
  rope.mscale = rope.mscale_all_dim = 1;
  rope.llama_4_scaling_beta = 0.1;
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
        config.num_key_value_heads = 8;
        // Where the field is not even null, MistralConfig has this default.
        if (!fields.names_field("sliding_window")) config.sliding_window = 4096;
        return make_mistral(fields, config, device, seed);
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
        config.num_key_value_heads = 8;
        config.head_dim = 128;
        config.rms_norm_eps = 1e-5;
        if (!fields.has("rope_parameters") && !fields.has("rope_scaling")) set_default_rope(fields, config);
        return make_mistral(fields, config, device, seed);
      }};
}

}  // namespace caldera
