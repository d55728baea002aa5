// GPT-2: Hugging Face's GPT2LMHeadModel. Learned positions, LayerNorm, one projection to queries, keys and
// values, a feed-forward module without a gate, and matrices that are the other way round.
#include <fmt/format.h>

#include "lm/models/decoder.h"
#include "lm/models/family.h"
#include "lm/nn/feed_forward/mlp.h"
#include "lm/nn/layers/conv1d.h"
#include "lm/nn/norms/layer_norm.h"
#include "lm/nn/precision.h"
#include "ops/core/slicing.h"

namespace caldera {
namespace {

constexpr std::uint64_t kGpt2PositionStream = 1'000'002;

class Gpt2Parts final : public DecoderParts {
 public:
  using DecoderParts::DecoderParts;

  std::unique_ptr<Layer> make_norm(std::int64_t width) const override {
    return std::make_unique<LayerNorm>(width, config().rms_norm_eps, true, device());
  }
  std::unique_ptr<SelfAttention> make_attention(std::int64_t layer, std::uint64_t seed) const override {
    const std::int64_t hidden = config().hidden_size;
    return std::make_unique<FusedAttention>(attention_config(layer), "c_attn",
                                            conv(hidden, 3 * hidden, seed, 0), "c_proj",
                                            conv(hidden, hidden, seed, 1));
  }
  std::unique_ptr<Layer> make_mlp(std::int64_t /*layer*/, std::uint64_t seed) const override {
    const std::int64_t hidden = config().hidden_size, width = config().intermediate_size;
    return std::make_unique<MLP>("c_fc", conv(hidden, width, seed, 2), "c_proj", conv(width, hidden, seed, 3),
                                 activation_of(config().hidden_act));
  }

 private:
  std::unique_ptr<Projection> conv(std::int64_t in, std::int64_t out, std::uint64_t seed,
                                   std::uint64_t stream) const {
    return std::make_unique<Conv1D>(in, out, config().initializer_range,
                                    mix_seed(seed, kFirstFreeStream + stream), device());
  }
};

class Gpt2 final : public Decoder {
 public:
  Gpt2(const ModelConfig& config, const DecoderParts& parts, std::uint64_t seed)
      : Decoder(parts, seed),
        config_(config),
        positions_(config.max_position_embeddings, config.hidden_size, config.initializer_range,
                   mix_seed(seed, kGpt2PositionStream), parts.device()) {}

  const ModelConfig& config() const override { return config_; }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    Decoder::visit(prefix, visitor);
    visitor.module(join_name(prefix, "transformer.wpe"), positions_);
  }

 protected:
  LazyTensor embed(const LazyTensor& ids, const TokenPositions& positions) override {
    const std::int64_t longest = positions.longest == 0 ? positions.reach : positions.longest;
    if (longest > config_.max_position_embeddings)
      throw ValueError(fmt::format(
          "position {} is beyond the {} positions of the model (n_positions); use shorter sequences",
          longest - 1, config_.max_position_embeddings));
    // Where a slice of stored data starts is an argument of the plan.
    const LazyTensor at = positions.rows.defined()
                              ? positions_(positions.rows)
                              : positions_.rows(positions.first, positions.first + positions.length);
    const LazyTensor x = Decoder::embed(ids, positions);
    return x + cast_like(at, x);
  }
  /// The first checkpoints leave out the module that holds all but the head, and keep masks as buffers.
  std::string stored_name(const std::string& name) const override {
    constexpr std::string_view kModule = "transformer.";
    return name.starts_with(kModule) ? name.substr(kModule.size()) : name;
  }
  bool is_harmless(const std::string& name) const override {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || Decoder::is_harmless(name);
  }

 private:
  ModelConfig config_;
  Embedding positions_;
};

ModelConfig read_gpt2(const detail::JsonFields& fields) {
  ModelConfig config;
  config.architecture = "GPT2LMHeadModel";
  config.model_type = "gpt2";
  config.max_position_embeddings = 1024;
  config.hidden_act = "gelu_new";
  config.tie_word_embeddings = true;
  config.rms_norm_eps = detail::positive_number(fields, "layer_norm_epsilon", 1e-5);
  const std::int64_t hidden = fields.integer("n_embd").value_or(fields.integer("hidden_size").value_or(768));
  config.intermediate_size = fields.integer("n_inner").value_or(4 * std::min<std::int64_t>(hidden, 1 << 24));
  detail::read_config(fields, config,
                      {.own = {{"layer_norm_epsilon", "1e-05"},
                               {"activation_function", R"("gelu_new")"},
                               {"n_inner"},
                               {"scale_attn_weights", "true"}},
                       .ignored = {"n_special", "predict_special_tokens"},
                       .activations = {"gelu_new", "gelu_pytorch_tanh", "gelu", "relu", "silu"},
                       .activation_field = "activation_function",
                       .rotary = false,
                       .aliases = {{"hidden_size", "n_embd"},
                                   {"num_hidden_layers", "n_layer"},
                                   {"num_attention_heads", "n_head"},
                                   {"max_position_embeddings", "n_positions"}}});
  if (!fields.boolean("scale_attn_weights").value_or(true))
    fields.fail("scale_attn_weights", "is false, which is not supported");
  if (config.num_key_value_heads != config.num_attention_heads ||
      config.num_attention_heads * config.head_dim != config.hidden_size)
    fields.fail("num_attention_heads", "times head_dim must be hidden_size, with as many key-value heads");
  return config;
}

std::unique_ptr<CausalLM> make_gpt2(const detail::JsonFields& fields, Device device, std::uint64_t seed) {
  const ModelConfig config = read_gpt2(fields);
  DecoderTraits traits;
  traits.names = {"transformer.wte", "transformer.h", "transformer.ln_f", "attn", "mlp"};
  traits.norms = {"ln_1", "", "ln_2", ""};
  traits.rotary = false;
  return std::make_unique<Gpt2>(config, Gpt2Parts(config, device, traits), seed);
}

}  // namespace

detail::ModelFamily gpt2_family() { return {{"GPT2LMHeadModel", "gpt2"}, make_gpt2}; }

}  // namespace caldera
