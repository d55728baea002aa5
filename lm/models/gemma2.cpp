// Gemma 2: Hugging Face's Gemma2ForCausalLM. Norms before and behind both parts of a layer, whose factor is
// 1 + weight; embeddings times sqrt(hidden_size); soft caps on scores and logits; GeGLU; every other layer
// slides.
#include <cmath>

#include "lm/models/decoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

std::unique_ptr<CausalLM> make_gemma2(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "Gemma2ForCausalLM";
  config.model_type = "gemma2";
  config.max_position_embeddings = 8192;
  config.num_key_value_heads = 4;
  config.head_dim = 256;
  config.sliding_window = 4096;
  config.tie_word_embeddings = true;
  config.hidden_act = "gelu_pytorch_tanh";
  detail::read_config(fields, config,
                      {.own = {{"hidden_activation", R"("gelu_pytorch_tanh")"},
                               {"attention_bias", "false"},
                               {"query_pre_attn_scalar", "256"},
                               {"attn_logit_softcapping", "50.0"},
                               {"final_logit_softcapping", "30.0"}},
                       .ignored = {"sliding_window_size", "cache_implementation"},
                       .activations = {"gelu_pytorch_tanh", "gelu_new", "gelu"},
                       .activation_field = "hidden_activation",
                       .sliding = true});
  detail::set_layers(fields, config, [](std::int64_t layer) { return layer % 2 == 0; });

  const bool bias = fields.boolean("attention_bias").value_or(false);
  DecoderTraits traits;
  traits.biases = {bias, bias, bias, bias};
  traits.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                  "post_feedforward_layernorm"};
  traits.norm_weight = NormWeight::plus_one;
  traits.embedding_multiplier = std::sqrt(static_cast<double>(config.hidden_size));
  traits.rounded_multiplier = true;
  traits.attention.scale = 1 / std::sqrt(detail::positive_number(fields, "query_pre_attn_scalar", 256));
  traits.attention.softcap = detail::optional_positive(fields, "attn_logit_softcapping", 50);
  traits.logits_softcap = detail::optional_positive(fields, "final_logit_softcapping", 30);
  return make_decoder(config, traits, device, seed);
}

}  // namespace

detail::ModelFamily gemma2_family() { return {{"Gemma2ForCausalLM", "gemma2"}, make_gemma2}; }

}  // namespace caldera
