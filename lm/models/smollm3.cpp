// SmolLM3: Hugging Face's SmolLM3ForCausalLM. Llama with layers, by default every fourth, that do not turn
// queries and keys.
#include "lm/models/decoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

std::unique_ptr<CausalLM> make_smollm3(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "SmolLM3ForCausalLM";
  config.model_type = "smollm3";
  config.max_position_embeddings = 32768;
  config.num_key_value_heads = 4;
  config.rope_theta = 2e6;
  config.tie_word_embeddings = true;
  detail::read_config(fields, config,
                      {.own = {{"no_rope_layers"},
                               {"no_rope_layer_interval", "4"},
                               {"use_sliding_window", "false"},
                               {"attention_bias", "false"},
                               {"mlp_bias", "false"}},
                       .ignored = {"max_window_layers"},
                       .sliding = true});

  const auto count = static_cast<std::size_t>(config.num_hidden_layers);
  const std::int64_t interval = fields.integer("no_rope_layer_interval").value_or(4);
  if (interval < 1) fields.fail("no_rope_layer_interval", "must be positive");
  const std::vector<std::int64_t> turned = fields.integers("no_rope_layers");  // 1: it rotates them
  if (!turned.empty() && turned.size() != count)
    fields.fail("no_rope_layers", "has " + std::to_string(turned.size()) +
                                      " entries, but num_hidden_layers is " + std::to_string(count));
  const auto is_rotary = [&](std::size_t layer) {
    return turned.empty() ? (static_cast<std::int64_t>(layer) + 1) % interval != 0 : turned[layer] != 0;
  };
  const bool sliding = fields.boolean("use_sliding_window").value_or(false) && config.sliding_window;
  if (!sliding) config.sliding_window.reset();
  detail::set_layers(fields, config, [&](std::int64_t layer) {
    return sliding && !is_rotary(static_cast<std::size_t>(layer));
  });
  for (std::size_t i = 0; i < count; ++i) config.layers[i].rotary = is_rotary(i);

  const bool bias = fields.boolean("attention_bias").value_or(false);
  const bool mlp_bias = fields.boolean("mlp_bias").value_or(false);
  return make_decoder(config, {.biases = {bias, bias, bias, bias, mlp_bias}}, device, seed);
}

}  // namespace

detail::ModelFamily smollm3_family() { return {{"SmolLM3ForCausalLM", "smollm3"}, make_smollm3}; }

}  // namespace caldera
