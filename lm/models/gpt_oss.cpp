// gpt-oss: Hugging Face's GptOssForCausalLM. Biases on all of attention, a sink in each head's softmax, every
// other layer sliding, yarn, and experts whose matrices are in one tensor.
#include "lm/models/decoder.h"
#include "lm/models/family.h"
#include "lm/nn/experts/moe.h"

namespace caldera {
namespace {

class GptOssParts final : public DecoderParts {
 public:
  GptOssParts(const ModelConfig& config, Device device, const DecoderTraits& traits,
              const StackedExperts::Sizes& experts, double limit)
      : DecoderParts(config, device, traits), experts_(experts), limit_(limit) {}

  std::unique_ptr<Layer> make_mlp(std::int64_t /*layer*/, std::uint64_t seed) const override {
    return std::make_unique<StackedExperts>(experts_, limit_, config().initializer_range,
                                            mix_seed(seed, kFirstFreeStream), device());
  }

 private:
  StackedExperts::Sizes experts_;
  double limit_;
};

ModelConfig read_gpt_oss(const detail::JsonFields& fields) {
  ModelConfig config;
  config.architecture = "GptOssForCausalLM";
  config.model_type = "gpt_oss";
  config.num_key_value_heads = 8;
  config.head_dim = 64;
  config.max_position_embeddings = 131072;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 150000;
  config.sliding_window = 128;
  if (!fields.has("rope_scaling") && !fields.has("rope_parameters")) {
    config.rope_scaling.type = RopeType::yarn;
    config.rope_scaling.factor = 32;
    config.rope_scaling.original_max_position_embeddings = 4096;
    config.rope_scaling.truncate = false;
  }
  detail::read_config(fields, config,
                      {.own = {{"num_local_experts"},
                               {"num_experts_per_tok", "4"},
                               {"attention_bias", "true"},
                               {"swiglu_limit", "7.0"},
                               {"num_experts"}},
                       .ignored = {"experts_per_token", "initial_context_length"},
                       .sliding = true});
  if (!fields.has("num_local_experts") && !fields.has("num_experts"))
    config.kept.fields.emplace_back("num_local_experts", "128");
  detail::set_layers(fields, config, [](std::int64_t layer) { return layer % 2 == 0; });
  return config;
}

std::unique_ptr<CausalLM> make_gpt_oss(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  const ModelConfig config = read_gpt_oss(fields);
  StackedExperts::Sizes experts{
      config.hidden_size, config.intermediate_size,
      fields.integer("num_local_experts").value_or(fields.integer("num_experts").value_or(128)),
      fields.integer("num_experts_per_tok").value_or(4)};
  if (experts.experts < 1 || experts.experts > 4096) fields.fail("num_local_experts", "must lie in 1..4096");
  if (experts.chosen < 1 || experts.chosen > experts.experts)
    fields.fail("num_experts_per_tok", "must be positive, and no more than num_local_experts");
  const bool bias = fields.boolean("attention_bias").value_or(true);
  const DecoderTraits traits{.biases = {bias, bias, bias, bias}, .attention = {.sinks = true}};
  const double limit = detail::positive_number(fields, "swiglu_limit", 7);
  return std::make_unique<detail::ConfiguredDecoder>(
      config, GptOssParts(config, device, traits, experts, limit), seed);
}

}  // namespace

detail::ModelFamily gpt_oss_family() { return {{"GptOssForCausalLM", "gpt_oss"}, make_gpt_oss}; }

}  // namespace caldera
