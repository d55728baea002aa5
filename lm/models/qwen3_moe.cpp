// Qwen3-MoE: Hugging Face's Qwen3MoeForCausalLM. Qwen3 whose layers, or every so many of them, have experts
// in place of the feed-forward module.
#include <algorithm>

#include "lm/models/decoder.h"
#include "lm/models/family.h"
#include "lm/nn/experts/moe.h"
#include "lm/nn/feed_forward/gated_mlp.h"

namespace caldera {
namespace {

struct Experts {
  std::int64_t count = 128;
  std::int64_t chosen = 8;
  std::int64_t width = 768;
  std::int64_t step = 1;  // every step-th layer has them
  std::vector<std::int64_t> dense_layers = {};
  bool scaled = false;

  bool in_layer(std::int64_t layer) const {
    return count > 0 && (layer + 1) % step == 0 &&
           std::ranges::find(dense_layers, layer) == dense_layers.end();
  }
};

class Qwen3MoeParts final : public DecoderParts {
 public:
  Qwen3MoeParts(const ModelConfig& config, Device device, const DecoderTraits& traits, Experts experts)
      : DecoderParts(config, device, traits), experts_(std::move(experts)) {}

  std::unique_ptr<Layer> make_mlp(std::int64_t layer, std::uint64_t seed) const override {
    if (!experts_.in_layer(layer)) return DecoderParts::make_mlp(layer, seed);
    const ModelConfig& c = config();
    std::vector<std::unique_ptr<Layer>> experts;
    for (std::int64_t e = 0; e < experts_.count; ++e) {
      const std::uint64_t stream = kFirstFreeStream + 1 + 3 * static_cast<std::uint64_t>(e);
      experts.push_back(
          std::make_unique<GatedMLP>(make_projection(c.hidden_size, experts_.width, false, seed, stream),
                                     make_projection(c.hidden_size, experts_.width, false, seed, stream + 1),
                                     make_projection(experts_.width, c.hidden_size, false, seed, stream + 2),
                                     activation_of(c.hidden_act)));
    }
    auto router = std::make_unique<Linear>(c.hidden_size, experts_.count, false, c.initializer_range,
                                           mix_seed(seed, kFirstFreeStream), device());
    return std::make_unique<ExpertLayers>(
        std::move(router), std::move(experts), activation_of(c.hidden_act), experts_.chosen,
        experts_.scaled ? RoutingWeights::softmax_of_all_scaled : RoutingWeights::softmax_of_all);
  }

 private:
  Experts experts_;
};

Experts read_experts(const detail::JsonFields& fields) {
  Experts experts;
  const auto read = [&](const char* field, std::int64_t& value, std::int64_t least, std::int64_t most) {
    value = fields.integer(field).value_or(value);
    if (value < least || value > most)
      fields.fail(field, "must lie in " + std::to_string(least) + ".." + std::to_string(most));
  };
  read(fields.has("num_experts") ? "num_experts" : "num_local_experts", experts.count, 0, 4096);
  read("num_experts_per_tok", experts.chosen, 1, std::max<std::int64_t>(experts.count, 1));
  read("moe_intermediate_size", experts.width, 1, 1 << 20);
  read("decoder_sparse_step", experts.step, 1, 1 << 20);
  experts.dense_layers = fields.integers("mlp_only_layers");
  experts.scaled = fields.boolean("norm_topk_prob").value_or(false);
  return experts;
}

std::unique_ptr<CausalLM> make_qwen3_moe(const detail::JsonFields& fields, Device device,
                                         std::uint64_t seed) {
  ModelConfig config;
  config.architecture = "Qwen3MoeForCausalLM";
  config.model_type = "qwen3_moe";
  config.max_position_embeddings = 32768;
  config.num_key_value_heads = 4;
  config.sliding_window = 4096;
  detail::read_config(fields, config,
                      {.own = {{"attention_bias", "false"},
                               {"use_sliding_window", "false"},
                               {"num_experts"},
                               {"num_local_experts"},
                               {"num_experts_per_tok", "8"},
                               {"moe_intermediate_size", "768"},
                               {"decoder_sparse_step", "1"},
                               {"mlp_only_layers", "[]"},
                               {"norm_topk_prob", "false"}},
                       .ignored = {"max_window_layers"},
                       .sliding = true});
  if (!fields.boolean("use_sliding_window").value_or(false)) config.sliding_window.reset();
  detail::set_equal_layers(fields, config);
  const Experts experts = read_experts(fields);
  if (!fields.has("num_experts") && !fields.has("num_local_experts"))
    config.kept.fields.emplace_back("num_experts", std::to_string(experts.count));
  const bool bias = fields.boolean("attention_bias").value_or(false);
  const DecoderTraits traits{.biases = {bias, bias, bias, bias},
                             .head_norm = DecoderTraits::HeadNorm::each_head};
  return std::make_unique<detail::ConfiguredDecoder>(config, Qwen3MoeParts(config, device, traits, experts),
                                                     seed);
}

}  // namespace

detail::ModelFamily qwen3_moe_family() { return {{"Qwen3MoeForCausalLM", "qwen3_moe"}, make_qwen3_moe}; }

}  // namespace caldera
