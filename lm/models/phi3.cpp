// Phi-3, 3.5 and 4-mini: Hugging Face's Phi3ForCausalLM. Llama with one projection to queries, keys and
// values, one to gate and up, and longrope frequencies over part of a head's width.
#include "lm/models/decoder.h"
#include "lm/models/family.h"
#include "lm/nn/feed_forward/gated_mlp.h"

namespace caldera {
namespace {

class Phi3Parts final : public DecoderParts {
 public:
  using DecoderParts::DecoderParts;

  std::unique_ptr<SelfAttention> make_attention(std::int64_t layer, std::uint64_t seed) const override {
    const ModelConfig& c = config();
    const std::int64_t heads = c.num_attention_heads + 2 * c.num_key_value_heads;
    return std::make_unique<FusedAttention>(
        attention_config(layer), "qkv_proj",
        make_projection(c.hidden_size, heads * c.head_dim, false, seed, kFirstFreeStream), "o_proj",
        make_projection(c.num_attention_heads * c.head_dim, c.hidden_size, false, seed,
                        kFirstFreeStream + 1));
  }
  std::unique_ptr<Layer> make_mlp(std::int64_t /*layer*/, std::uint64_t seed) const override {
    const ModelConfig& c = config();
    return std::make_unique<FusedGatedMLP>(
        "gate_up_proj",
        make_projection(c.hidden_size, 2 * c.intermediate_size, false, seed, kFirstFreeStream + 2),
        "down_proj", make_projection(c.intermediate_size, c.hidden_size, false, seed, kFirstFreeStream + 3),
        activation_of(c.hidden_act));
  }
};

std::unique_ptr<CausalLM> make_phi3(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "Phi3ForCausalLM";
  config.model_type = "phi3";
  config.max_position_embeddings = 4096;
  config.rms_norm_eps = 1e-5;
  config.rope_scaling.original_max_position_embeddings = 4096;
  detail::read_config(
      fields, config,
      {.ignored = {"full_attn_mod", "interpolate_factor"}, .sliding = true, .partial_rotary = true});
  if (const RopeType type = config.rope_scaling.type; type != RopeType::plain && type != RopeType::longrope)
    fields.fail(fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                "asks for frequencies that are not supported for phi3 (supported: default, longrope)");
  detail::set_equal_layers(fields, config);
  return make_decoder<Phi3Parts>(config, {}, device, seed);
}

}  // namespace

detail::ModelFamily phi3_family() { return {{"Phi3ForCausalLM", "phi3"}, make_phi3}; }

}  // namespace caldera
