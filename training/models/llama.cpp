#include "training/models/llama.h"

#include <fmt/format.h>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "training/nn/precision.h"

namespace caldera {
namespace {

const ModelConfig& validated(const ModelConfig& config) {
  config.validate();
  return config;
}

// One random stream per matrix: a layer's own ones, then those of the whole model.
enum LayerStream : std::uint64_t { kQ, kK, kV, kO, kGate, kUp, kDown };
constexpr std::uint64_t kEmbeddingStream = 1'000'000;
constexpr std::uint64_t kHeadStream = 1'000'001;

std::unique_ptr<Projection> make_linear(const ModelConfig& config, std::int64_t in, std::int64_t out,
                                        bool bias, std::uint64_t seed, Device device) {
  return std::make_unique<Linear>(in, out, bias, config.initializer_range, seed, device);
}

}  // namespace

LlamaLayer::LlamaLayer(const ModelConfig& c, std::uint64_t seed, Device device)
    : self_attn({c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim},
                make_linear(c, c.hidden_size, c.num_attention_heads * c.head_dim, c.attention_bias,
                            mix_seed(seed, kQ), device),
                make_linear(c, c.hidden_size, c.num_key_value_heads * c.head_dim, c.attention_bias,
                            mix_seed(seed, kK), device),
                make_linear(c, c.hidden_size, c.num_key_value_heads * c.head_dim, c.attention_bias,
                            mix_seed(seed, kV), device),
                make_linear(c, c.num_attention_heads * c.head_dim, c.hidden_size, c.attention_bias,
                            mix_seed(seed, kO), device)),
      mlp(make_linear(c, c.hidden_size, c.intermediate_size, c.mlp_bias, mix_seed(seed, kGate), device),
          make_linear(c, c.hidden_size, c.intermediate_size, c.mlp_bias, mix_seed(seed, kUp), device),
          make_linear(c, c.intermediate_size, c.hidden_size, c.mlp_bias, mix_seed(seed, kDown), device)),
      input_layernorm_(c.hidden_size, c.rms_norm_eps, device),
      post_attention_layernorm_(c.hidden_size, c.rms_norm_eps, device) {}

LazyTensor LlamaLayer::forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) {
  const LazyTensor attended = x + self_attn.forward(input_layernorm_.forward(x), context, layer);
  return attended + mlp.forward(post_attention_layernorm_.forward(attended));
}

void LlamaLayer::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(join_name(prefix, "self_attn"), self_attn);
  visitor.module(join_name(prefix, "mlp"), mlp);
  visitor.module(join_name(prefix, "input_layernorm"), input_layernorm_);
  visitor.module(join_name(prefix, "post_attention_layernorm"), post_attention_layernorm_);
}

Llama::Llama(const ModelConfig& config, Device device, std::uint64_t seed)
    : Llama(Unset{}, config, device, seed) {
  materialize();
}

Llama::Llama(Unset, const ModelConfig& config, Device device, std::uint64_t seed)
    : config_(validated(config)),
      device_(device),
      rotary_(config.head_dim, config.max_position_embeddings, config.rope_theta, device),
      embed_tokens_(config.vocab_size, config.hidden_size, config.initializer_range,
                    mix_seed(seed, kEmbeddingStream), device),
      norm_(config.hidden_size, config.rms_norm_eps, device) {
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i)
    layers_.push_back(
        std::make_unique<LlamaLayer>(config, mix_seed(seed, static_cast<std::uint64_t>(i)), device));
  if (!config.tie_word_embeddings)
    lm_head_ = std::make_unique<Linear>(config.hidden_size, config.vocab_size, false,
                                        config.initializer_range, mix_seed(seed, kHeadStream), device);
}

LazyTensor Llama::forward(const LazyTensor& ids, KVCache* cache) { return logits(hidden_states(ids, cache)); }

LazyTensor Llama::hidden_states(const LazyTensor& ids, KVCache* cache) {
  if (ids.rank() != 2 || ids.shape(1) == 0)
    throw ShapeError(fmt::format("Llama: ids {} are not (batch, positions)", ids.shape().to_string()));
  if (ids.dtype() != DType::i32)
    throw DTypeError(fmt::format("Llama: ids are {}, expected int32", name(ids.dtype())));
  const std::int64_t length = ids.shape(1);
  const AttentionContext context = make_attention_context(rotary_, length, cache, device_);
  LazyTensor x = embed_tokens_.forward(ids);
  if (is_16bit_float(dtype_)) x = in_dtype(x, dtype_);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i]->forward(x, context, static_cast<std::int64_t>(i));
  if (cache != nullptr) cache->finish();
  return norm_.forward(x);
}

LazyTensor Llama::logits(const LazyTensor& hidden) {
  return lm_head_ ? lm_head_->forward(hidden)
                  : matmul(hidden, transpose(beside(embed_tokens_.weight(), hidden)));
}

LazyTensor Llama::make_ids(std::span<const std::int32_t> ids, std::int64_t batch) const {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= config_.vocab_size)
      throw ValueError(fmt::format("token id {} at position {} is outside of the model's vocabulary of {}",
                                   ids[i], i, config_.vocab_size));
  const auto count = static_cast<std::int64_t>(ids.size());
  if (batch < 1 || count == 0 || count % batch != 0)
    throw ShapeError(fmt::format("Llama: {} token ids do not make a batch of {}", count, batch));
  return LazyTensor::from_span(ids, Shape{batch, count / batch}, device_);
}

std::unique_ptr<KVCache> Llama::make_cache(std::int64_t capacity, std::int64_t batch) const {
  if (capacity > config_.max_position_embeddings)
    throw ValueError(
        fmt::format("a KV cache of {} positions exceeds the {} that the model allows "
                    "(max_position_embeddings)",
                    capacity, config_.max_position_embeddings));
  return std::make_unique<KVCache>(config_.num_hidden_layers, batch, config_.num_key_value_heads, capacity,
                                   config_.head_dim, dtype_, device_);
}

void Llama::check_dtype(DType dtype) const {
  if (dtype != DType::f32 && !is_16bit_float(dtype))
    throw DTypeError(
        fmt::format("Llama: cannot compute in {}; use float32, float16 or bfloat16", name(dtype)));
  if (!backend(device_).supports(dtype))
    throw DTypeError(
        fmt::format("Llama: {} does not compute with {}; use float32", device_.to_string(), name(dtype)));
}

void Llama::set_dtype(DType dtype) {
  check_dtype(dtype);
  dtype_ = dtype;
  for (const Parameter& p : parameters())
    if (!p.trainable && p.tensor->dtype() != dtype) detail::convert(*p.tensor, dtype);
}

void Llama::visit(const std::string& prefix, ParameterVisitor& visitor) {
  const std::string model = join_name(prefix, "model");
  visitor.module(join_name(model, "embed_tokens"), embed_tokens_);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    visitor.module(fmt::format("{}.layers.{}", model, i), *layers_[i]);
  visitor.module(join_name(model, "norm"), norm_);
  if (lm_head_) visitor.module(join_name(prefix, "lm_head"), *lm_head_);
}

void Llama::visit_projections(const ProjectionVisitor& visitor) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Attention& a = layers_[i]->self_attn;
    SwiGLU& m = layers_[i]->mlp;
    const auto visit = [&](const char* parent, const char* name, std::unique_ptr<Projection>& slot) {
      visitor(fmt::format("model.layers.{}.{}.{}", i, parent, name), name, slot);
    };
    visit("self_attn", "q_proj", a.q_proj);
    visit("self_attn", "k_proj", a.k_proj);
    visit("self_attn", "v_proj", a.v_proj);
    visit("self_attn", "o_proj", a.o_proj);
    visit("mlp", "gate_proj", m.gate_proj);
    visit("mlp", "up_proj", m.up_proj);
    visit("mlp", "down_proj", m.down_proj);
  }
}

}  // namespace caldera
