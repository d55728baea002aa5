// Gemma 3, text: Hugging Face's Gemma3ForCausalLM. As Gemma 2, with an RMSNorm of each head of queries and
// keys in place of the soft cap, and five layers that slide, with frequencies of their own, for one that does
// not. EmbeddingGemma is its model without a head, whose positions see one another.
#include <cmath>

#include "lm/models/decoder.h"
#include "lm/models/encoder.h"
#include "lm/models/family.h"

namespace caldera {
namespace {

ModelConfig read_gemma3(const detail::JsonFields& fields, ModelConfig config, bool encoder) {
  // The part of a larger model that is text leaves out what Gemma3TextConfig has as defaults.
  config.hidden_size = 2304;
  config.intermediate_size = 9216;
  config.num_hidden_layers = 26;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.vocab_size = 262208;
  config.max_position_embeddings = 131072;
  config.head_dim = 256;
  config.sliding_window = 4096;
  config.rope_theta = 1e6;
  config.local_rope = RopeParameters{detail::positive_number(fields, "rope_local_base_freq", 1e4)};
  config.tie_word_embeddings = true;
  config.hidden_act = "gelu_pytorch_tanh";
  detail::FamilyFields family{.own = {{"hidden_activation", R"("gelu_pytorch_tanh")"},
                                      {"attention_bias", "false"},
                                      {"query_pre_attn_scalar", "256"},
                                      {"attn_logit_softcapping"},
                                      {"final_logit_softcapping"},
                                      {"rope_local_base_freq", "10000.0"},
                                      {"sliding_window_pattern"},
                                      {"_sliding_window_pattern"}},
                              .activations = {"gelu_pytorch_tanh", "gelu_new", "gelu"},
                              .activation_field = "hidden_activation",
                              .sliding = true,
                              .local_rope = true};
  if (encoder) family.own.push_back({"use_bidirectional_attention", "false"});
  detail::read_config(fields, config, family);
  const std::int64_t pattern = fields.integer("sliding_window_pattern")
                                   .value_or(fields.integer("_sliding_window_pattern").value_or(6));
  if (pattern < 1) fields.fail("sliding_window_pattern", "must be positive");
  detail::set_layers(fields, config, [&](std::int64_t layer) { return (layer + 1) % pattern != 0; });
  return config;
}

DecoderTraits gemma3_traits(const detail::JsonFields& fields, const ModelConfig& config) {
  const bool bias = fields.boolean("attention_bias").value_or(false);
  DecoderTraits traits;
  traits.biases = {bias, bias, bias, bias};
  traits.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                  "post_feedforward_layernorm"};
  traits.norm_weight = NormWeight::plus_one;
  traits.head_norm = DecoderTraits::HeadNorm::each_head;
  traits.embedding_multiplier = std::sqrt(static_cast<double>(config.hidden_size));
  traits.rounded_multiplier = true;
  traits.attention.scale = 1 / std::sqrt(detail::positive_number(fields, "query_pre_attn_scalar", 256));
  traits.attention.softcap = detail::optional_positive(fields, "attn_logit_softcapping", {});
  traits.logits_softcap = detail::optional_positive(fields, "final_logit_softcapping", {});
  return traits;
}

std::unique_ptr<CausalLM> make_gemma3(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "Gemma3ForCausalLM";
  config.model_type = "gemma3_text";
  config = read_gemma3(fields, config, false);
  return make_decoder(config, gemma3_traits(fields, config), device, seed);
}

std::unique_ptr<CausalLM> make_encoder(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "Gemma3TextModel";
  config.model_type = "gemma3_text";
  config = read_gemma3(fields, config, true);
  DecoderTraits traits = gemma3_traits(fields, config);
  traits.names = {"embed_tokens", "layers", "norm"};
  traits.attention.bidirectional = fields.boolean("use_bidirectional_attention").value_or(false);
  // Half the window is before a position, half behind it.
  if (traits.attention.bidirectional) config.sliding_window = *config.sliding_window / 2 + 1;
  return std::make_unique<Encoder>(config, DecoderParts(config, device, traits), seed, "model.");
}

}  // namespace

detail::ModelFamily gemma3_family() { return {{"Gemma3ForCausalLM", "gemma3_text"}, make_gemma3}; }

detail::ModelFamily embedding_gemma_family() {
  return {{"Gemma3TextModel", "gemma3_text"}, make_encoder, {}, detail::ModelUse::embedding};
}

}  // namespace caldera
