// Granite: Hugging Face's GraniteForCausalLM. Llama with four numbers that scale embeddings, scores, what a
// layer adds, and logits.
#include "lm/models/decoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

std::unique_ptr<CausalLM> make_granite(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "GraniteForCausalLM";
  config.model_type = "granite";
  detail::read_config(fields, config,
                      {.own = {{"embedding_multiplier", "1.0"},
                               {"attention_multiplier", "1.0"},
                               {"residual_multiplier", "1.0"},
                               {"logits_scaling", "1.0"},
                               {"attention_bias", "false"},
                               {"mlp_bias", "false"}}});
  const bool bias = fields.boolean("attention_bias").value_or(false);
  DecoderTraits traits;
  traits.biases = {bias, bias, bias, bias, fields.boolean("mlp_bias").value_or(false)};
  traits.embedding_multiplier = detail::positive_number(fields, "embedding_multiplier", 1);
  traits.attention.scale = detail::positive_number(fields, "attention_multiplier", 1);
  traits.residual_multiplier = detail::positive_number(fields, "residual_multiplier", 1);
  traits.logits_divisor = detail::positive_number(fields, "logits_scaling", 1);
  return make_decoder(config, traits, device, seed);
}

}  // namespace

detail::ModelFamily granite_family() { return {{"GraniteForCausalLM", "granite"}, make_granite}; }

}  // namespace caldera
