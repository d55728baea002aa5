#include "training/models/decoder.h"

#include <fmt/format.h>

#include "training/nn/gated_mlp.h"
#include "training/nn/linear.h"
#include "training/nn/precision.h"
#include "training/nn/rms_norm.h"

namespace caldera {
namespace {

// One random stream per matrix: a layer's own ones, then those of the whole model.
enum LayerStream : std::uint64_t { kQ, kK, kV, kO, kGate, kUp, kDown, kTaken };
constexpr std::uint64_t kEmbeddingStream = 1'000'000;
constexpr std::uint64_t kHeadStream = 1'000'001;

}  // namespace

DecoderParts::DecoderParts(const ModelConfig& config, Device device, const LayerBiases& biases)
    : config_(config), device_(device), biases_(biases) {
  config.validate({config.hidden_act});  // which activations it may have is for the family to say
}

std::unique_ptr<Layer> DecoderParts::make_norm(std::int64_t width) const {
  return std::make_unique<RMSNorm>(width, config_.rms_norm_eps, device_);
}

std::unique_ptr<Projection> DecoderParts::make_projection(std::int64_t in, std::int64_t out, bool bias,
                                                          std::uint64_t seed, std::uint64_t stream) const {
  static_assert(kFirstFreeStream == kTaken);
  return std::make_unique<Linear>(in, out, bias, config_.initializer_range, mix_seed(seed, stream), device_);
}

std::unique_ptr<SelfAttention> DecoderParts::make_attention(std::uint64_t seed) const {
  const ModelConfig& c = config_;
  const std::int64_t q_width = c.num_attention_heads * c.head_dim;
  const std::int64_t kv_width = c.num_key_value_heads * c.head_dim;
  return std::make_unique<Attention>(
      AttentionConfig{c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim},
      make_projection(c.hidden_size, q_width, biases_.q, seed, kQ),
      make_projection(c.hidden_size, kv_width, biases_.k, seed, kK),
      make_projection(c.hidden_size, kv_width, biases_.v, seed, kV),
      make_projection(q_width, c.hidden_size, biases_.o, seed, kO));
}

std::unique_ptr<Layer> DecoderParts::make_mlp(std::uint64_t seed) const {
  const ModelConfig& c = config_;
  return std::make_unique<GatedMLP>(
      make_projection(c.hidden_size, c.intermediate_size, biases_.mlp, seed, kGate),
      make_projection(c.hidden_size, c.intermediate_size, biases_.mlp, seed, kUp),
      make_projection(c.intermediate_size, c.hidden_size, biases_.mlp, seed, kDown),
      activation_of(c.hidden_act));
}

std::unique_ptr<DecoderLayer> DecoderParts::make_layer(std::uint64_t seed) const {
  return std::make_unique<DecoderLayer>(*this, seed);
}

DecoderLayer::DecoderLayer(const DecoderParts& parts, std::uint64_t seed)
    : self_attn_(parts.make_attention(seed)),
      mlp_(parts.make_mlp(seed)),
      input_layernorm_(parts.make_norm(parts.config().hidden_size)),
      post_attention_layernorm_(parts.make_norm(parts.config().hidden_size)) {}

LazyTensor DecoderLayer::forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) {
  const LazyTensor attended = x + self_attn_->forward(input_layernorm_->forward(x), context, layer);
  return attended + mlp_->forward(post_attention_layernorm_->forward(attended));
}

void DecoderLayer::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(join_name(prefix, "self_attn"), *self_attn_);
  visitor.module(join_name(prefix, "mlp"), *mlp_);
  visitor.module(join_name(prefix, "input_layernorm"), *input_layernorm_);
  visitor.module(join_name(prefix, "post_attention_layernorm"), *post_attention_layernorm_);
}

Decoder::Decoder(const DecoderParts& parts, std::uint64_t seed)
    : CausalLM(parts.device()),
      rotary_(parts.config().head_dim, parts.config().max_position_embeddings, parts.config().rope_theta,
              parts.device()),
      embed_tokens_(parts.config().vocab_size, parts.config().hidden_size, parts.config().initializer_range,
                    mix_seed(seed, kEmbeddingStream), parts.device()),
      norm_(parts.make_norm(parts.config().hidden_size)) {
  const ModelConfig& config = parts.config();
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i)
    layers_.push_back(parts.make_layer(mix_seed(seed, static_cast<std::uint64_t>(i))));
  if (!config.tie_word_embeddings)
    lm_head_ = std::make_unique<Linear>(config.hidden_size, config.vocab_size, false,
                                        config.initializer_range, mix_seed(seed, kHeadStream), device());
}

LazyTensor Decoder::hidden_states(const LazyTensor& ids, KVCache* cache) {
  if (ids.rank() != 2 || ids.shape(1) == 0)
    throw ShapeError(
        fmt::format("{}: ids {} are not (batch, positions)", config().architecture, ids.shape().to_string()));
  if (ids.dtype() != DType::i32)
    throw DTypeError(fmt::format("{}: ids are {}, expected int32", config().architecture, name(ids.dtype())));
  const AttentionContext context = make_attention_context(rotary_, ids.shape(1), cache, device());
  LazyTensor x = embed_tokens_(ids);
  if (is_16bit_float(dtype())) x = in_dtype(x, dtype());
  x = transform_embeddings(x);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i]->forward(x, context, static_cast<std::int64_t>(i));
  if (cache != nullptr) cache->finish();
  return norm_->forward(x);
}

LazyTensor Decoder::logits(const LazyTensor& hidden) {
  return lm_head_ ? lm_head_->forward(hidden) : embed_tokens_.project(hidden);
}

void Decoder::visit(const std::string& prefix, ParameterVisitor& visitor) {
  const std::string model = join_name(prefix, "model");
  visitor.module(join_name(model, "embed_tokens"), embed_tokens_);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    visitor.module(fmt::format("{}.layers.{}", model, i), *layers_[i]);
  visitor.module(join_name(model, "norm"), *norm_);
  if (lm_head_) visitor.module(join_name(prefix, "lm_head"), *lm_head_);
}

}  // namespace caldera
