#include "training/models/decoder.h"

#include <fmt/format.h>

#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "training/nn/gated_mlp.h"
#include "training/nn/linear.h"
#include "training/nn/precision.h"

namespace caldera {
namespace {

const ModelConfig& validated(const ModelConfig& config) {
  config.validate({config.hidden_act});  // which activations it may have is for the family to say
  return config;
}

// One random stream per matrix: a layer's own ones, then those of the whole model.
enum LayerStream : std::uint64_t { kQ, kK, kV, kO, kGate, kUp, kDown };
constexpr std::uint64_t kEmbeddingStream = 1'000'000;
constexpr std::uint64_t kHeadStream = 1'000'001;

}  // namespace

DecoderLayer::DecoderLayer(const ModelConfig& config, std::unique_ptr<SelfAttention> attention,
                           std::unique_ptr<Layer> mlp, Device device)
    : self_attn_(std::move(attention)),
      mlp_(std::move(mlp)),
      input_layernorm_(config.hidden_size, config.rms_norm_eps, device),
      post_attention_layernorm_(config.hidden_size, config.rms_norm_eps, device) {}

LazyTensor DecoderLayer::forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) {
  const LazyTensor attended = x + self_attn_->forward(input_layernorm_(x), context, layer);
  return attended + mlp_->forward(post_attention_layernorm_(attended));
}

void DecoderLayer::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(join_name(prefix, "self_attn"), *self_attn_);
  visitor.module(join_name(prefix, "mlp"), *mlp_);
  visitor.module(join_name(prefix, "input_layernorm"), input_layernorm_);
  visitor.module(join_name(prefix, "post_attention_layernorm"), post_attention_layernorm_);
}

std::unique_ptr<Projection> make_projection(const ModelConfig& config, std::int64_t in, std::int64_t out,
                                            bool bias, std::uint64_t seed, std::uint64_t stream,
                                            Device device) {
  return std::make_unique<Linear>(in, out, bias, config.initializer_range, mix_seed(seed, stream), device);
}

std::unique_ptr<SelfAttention> make_attention(const ModelConfig& c, const LayerBiases& biases,
                                              std::uint64_t seed, Device device) {
  const std::int64_t q_width = c.num_attention_heads * c.head_dim;
  const std::int64_t kv_width = c.num_key_value_heads * c.head_dim;
  return std::make_unique<Attention>(
      AttentionConfig{c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim},
      make_projection(c, c.hidden_size, q_width, biases.q, seed, kQ, device),
      make_projection(c, c.hidden_size, kv_width, biases.k, seed, kK, device),
      make_projection(c, c.hidden_size, kv_width, biases.v, seed, kV, device),
      make_projection(c, q_width, c.hidden_size, biases.o, seed, kO, device));
}

std::unique_ptr<Layer> make_swiglu(const ModelConfig& c, bool bias, std::uint64_t seed, Device device) {
  return std::make_unique<SwiGLU>(
      make_projection(c, c.hidden_size, c.intermediate_size, bias, seed, kGate, device),
      make_projection(c, c.hidden_size, c.intermediate_size, bias, seed, kUp, device),
      make_projection(c, c.intermediate_size, c.hidden_size, bias, seed, kDown, device));
}

std::unique_ptr<DecoderLayer> make_decoder_layer(const ModelConfig& config, const LayerBiases& biases,
                                                 std::uint64_t seed, Device device) {
  config.validate();
  return std::make_unique<DecoderLayer>(config, make_attention(config, biases, seed, device),
                                        make_swiglu(config, biases.mlp, seed, device), device);
}

Decoder::Decoder(const ModelConfig& config, Device device, std::uint64_t seed, const MakeLayer& make_layer)
    : CausalLM(device),
      rotary_(validated(config).head_dim, config.max_position_embeddings, config.rope_theta, device),
      embed_tokens_(config.vocab_size, config.hidden_size, config.initializer_range,
                    mix_seed(seed, kEmbeddingStream), device),
      norm_(config.hidden_size, config.rms_norm_eps, device) {
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i)
    layers_.push_back(make_layer(mix_seed(seed, static_cast<std::uint64_t>(i))));
  if (!config.tie_word_embeddings)
    lm_head_ = std::make_unique<Linear>(config.hidden_size, config.vocab_size, false,
                                        config.initializer_range, mix_seed(seed, kHeadStream), device);
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
  for (std::size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i]->forward(x, context, static_cast<std::int64_t>(i));
  if (cache != nullptr) cache->finish();
  return norm_(x);
}

LazyTensor Decoder::logits(const LazyTensor& hidden) {
  return lm_head_ ? lm_head_->forward(hidden)
                  : matmul(hidden, transpose(cast_like(embed_tokens_.weight(), hidden)));
}

void Decoder::visit(const std::string& prefix, ParameterVisitor& visitor) {
  const std::string model = join_name(prefix, "model");
  visitor.module(join_name(model, "embed_tokens"), embed_tokens_);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    visitor.module(fmt::format("{}.layers.{}", model, i), *layers_[i]);
  visitor.module(join_name(model, "norm"), norm_);
  if (lm_head_) visitor.module(join_name(prefix, "lm_head"), *lm_head_);
}

}  // namespace caldera
