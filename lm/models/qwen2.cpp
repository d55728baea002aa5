// Qwen2 and 2.5: Hugging Face's Qwen2ForCausalLM. A pre-norm decoder as Llama, with biases on the query, key
// and value projections and on nothing else; the layers from max_window_layers on may slide.
#include "lm/models/decoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

/// Defaults are those of Hugging Face's Qwen2Config.
ModelConfig defaults() {
  ModelConfig config;
  config.architecture = "Qwen2ForCausalLM";
  config.model_type = "qwen2";
  config.max_position_embeddings = 32768;
  config.num_key_value_heads = 32;
  config.sliding_window = 4096;
  return config;
}

std::unique_ptr<CausalLM> make_qwen2(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config = defaults();
  detail::read_config(
      fields, config,
      {.own = {{"use_sliding_window", "false"}, {"max_window_layers", "28"}}, .sliding = true});
  const bool uses_window = fields.boolean("use_sliding_window").value_or(false);
  if (!uses_window) config.sliding_window.reset();
  const bool sliding = config.sliding_window.has_value();
  const std::int64_t full_layers = fields.integer("max_window_layers").value_or(28);
  detail::set_layers(fields, config, [&](std::int64_t layer) { return sliding && layer >= full_layers; });
  return make_decoder(config, {.biases = {.q = true, .k = true, .v = true}}, device, seed);
}

}  // namespace

detail::ModelFamily qwen2_family() { return {{"Qwen2ForCausalLM", "qwen2"}, make_qwen2}; }

}  // namespace caldera
