// Qwen3, dense: Hugging Face's Qwen3ForCausalLM. As Qwen2, with an RMSNorm of each head of queries and keys
// before they are rotated, and biases on all of attention's projections or on none.
#include "lm/models/decoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

std::unique_ptr<CausalLM> make_qwen3(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "Qwen3ForCausalLM";
  config.model_type = "qwen3";
  config.max_position_embeddings = 32768;
  config.num_key_value_heads = 32;
  config.sliding_window = 4096;
  config.head_dim = 128;
  detail::read_config(
      fields, config,
      {.own = {{"attention_bias", "false"}, {"use_sliding_window", "false"}, {"max_window_layers", "28"}},
       .sliding = true});
  if (!fields.boolean("use_sliding_window").value_or(false)) config.sliding_window.reset();
  const bool sliding = config.sliding_window.has_value();
  const std::int64_t full_layers = fields.integer("max_window_layers").value_or(28);
  detail::set_layers(fields, config, [&](std::int64_t layer) { return sliding && layer >= full_layers; });
  const bool bias = fields.boolean("attention_bias").value_or(false);
  return make_decoder(config,
                      {.biases = {bias, bias, bias, bias}, .head_norm = DecoderTraits::HeadNorm::each_head},
                      device, seed);
}

}  // namespace

detail::ModelFamily qwen3_family() { return {{"Qwen3ForCausalLM", "qwen3"}, make_qwen3}; }

}  // namespace caldera
