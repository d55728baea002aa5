// ModernBERT: Hugging Face's ModernBertModel. An encoder of pre-norm layers with one projection to queries,
// keys and values, GeGLU, rotary positions, and layers that slide, with frequencies of their own, but for
// every global_attn_every_n_layers-th. The first layer's attention gets the embeddings' norm as it is.
#include "lm/models/decoder.h"
#include "lm/models/encoder.h"
#include "lm/models/family.h"
#include "lm/nn/feed_forward/gated_mlp.h"
#include "lm/nn/norms/layer_norm.h"

namespace caldera {
namespace {

struct Biases {
  bool norm = false;
  bool attention = false;
  bool mlp = false;
};

class ModernBertParts final : public DecoderParts {
 public:
  ModernBertParts(const ModelConfig& config, Device device, const DecoderTraits& traits, const Biases& biases)
      : DecoderParts(config, device, traits), biases_(biases) {}

  LayerNorms norms_of(std::int64_t layer) const override {
    return {layer == 0 ? "" : "attn_norm", "", "mlp_norm", ""};
  }
  std::unique_ptr<Layer> make_norm(std::int64_t width) const override {
    return std::make_unique<LayerNorm>(width, config().rms_norm_eps, biases_.norm, device());
  }
  std::unique_ptr<SelfAttention> make_attention(std::int64_t layer, std::uint64_t seed) const override {
    const std::int64_t hidden = config().hidden_size;
    return std::make_unique<FusedAttention>(
        attention_config(layer), "Wqkv",
        make_projection(hidden, 3 * hidden, biases_.attention, seed, kFirstFreeStream), "Wo",
        make_projection(hidden, hidden, biases_.attention, seed, kFirstFreeStream + 1));
  }
  std::unique_ptr<Layer> make_mlp(std::int64_t /*layer*/, std::uint64_t seed) const override {
    const std::int64_t hidden = config().hidden_size, width = config().intermediate_size;
    return std::make_unique<FusedGatedMLP>(
        "Wi", make_projection(hidden, 2 * width, biases_.mlp, seed, kFirstFreeStream + 2), "Wo",
        make_projection(width, hidden, biases_.mlp, seed, kFirstFreeStream + 3),
        activation_of(config().hidden_act));
  }

 private:
  Biases biases_;
};

class ModernBert final : public Encoder {
 public:
  ModernBert(const ModelConfig& config, const DecoderParts& parts, std::uint64_t seed)
      : Encoder(config, parts, seed, "model."), norm_(parts.make_norm(config.hidden_size)) {}

  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    Encoder::visit(prefix, visitor);
    visitor.module(join_name(prefix, "embeddings.norm"), *norm_);
  }

 protected:
  LazyTensor embed(const LazyTensor& ids, const TokenPositions& positions) override {
    return norm_->forward(Encoder::embed(ids, positions));
  }

 private:
  std::unique_ptr<Layer> norm_;
};

ModelConfig read_modernbert(const detail::JsonFields& fields) {
  ModelConfig config;
  config.architecture = "ModernBertModel";
  config.model_type = "modernbert";
  config.max_position_embeddings = 8192;
  config.intermediate_size = 1152;
  config.hidden_act = "gelu";
  config.rms_norm_eps = detail::positive_number(fields, "norm_eps", 1e-5);
  config.rope_theta = detail::positive_number(fields, "global_rope_theta", 160000);
  config.local_rope = RopeParameters{detail::positive_number(fields, "local_rope_theta", 10000)};
  config.tie_word_embeddings = true;  // there is no head
  detail::read_config(
      fields, config,
      {.own = {{"hidden_activation", R"("gelu")"},
               {"norm_eps", "1e-05"},
               {"global_rope_theta", "160000.0"},
               {"local_rope_theta", "10000.0"},
               {"norm_bias", "false"},
               {"attention_bias", "false"},
               {"mlp_bias", "false"},
               {"local_attention", "128"},
               {"global_attn_every_n_layers", "3"}},
       .ignored = {"initializer_cutoff_factor", "embedding_dropout", "mlp_dropout", "decoder_bias",
                   "classifier_pooling", "classifier_activation", "deterministic_flash_attn",
                   "sparse_prediction", "sparse_pred_ignore_index", "reference_compile",
                   "repad_logits_with_grad", "layer_norm_eps", "position_embedding_type"},
       .activations = {"gelu", "gelu_new", "gelu_pytorch_tanh", "silu", "relu"},
       .activation_field = "hidden_activation",
       .sliding = true,
       .local_rope = true});
  // rope_scaling, of one kind for all layers, is that of both.
  if (fields.has("rope_scaling") && !fields.object("rope_scaling", config.model_type).first_object())
    config.local_rope->scaling = config.rope_scaling;
  const std::int64_t window = fields.integer("local_attention").value_or(128);
  const std::int64_t every = fields.integer("global_attn_every_n_layers").value_or(3);
  if (window < 1) fields.fail("local_attention", "must be positive");
  if (every < 1) fields.fail("global_attn_every_n_layers", "must be positive");
  config.sliding_window = window / 2 + 1;  // half of it before a position, half behind it, and itself
  detail::set_layers(fields, config, [&](std::int64_t layer) { return layer % every != 0; });
  if (config.num_key_value_heads * config.head_dim != config.hidden_size)
    fields.fail("num_attention_heads", "times head_dim must be hidden_size, with as many key-value heads");
  return config;
}

std::unique_ptr<CausalLM> make_modernbert(const detail::JsonFields& fields, Device device,
                                          std::uint64_t seed) {
  const ModelConfig config = read_modernbert(fields);
  const auto bias = [&](const char* field) { return fields.boolean(field).value_or(false); };
  DecoderTraits traits;
  traits.names = {"embeddings.tok_embeddings", "layers", "final_norm", "attn", "mlp"};
  traits.attention.bidirectional = true;
  const Biases biases{bias("norm_bias"), bias("attention_bias"), bias("mlp_bias")};
  return std::make_unique<ModernBert>(config, ModernBertParts(config, device, traits, biases), seed);
}

}  // namespace

detail::ModelFamily modernbert_family() {
  return {{"ModernBertModel", "modernbert"},
          make_modernbert,
          {"ModernBertForMaskedLM"},
          detail::ModelUse::embedding};
}

}  // namespace caldera
