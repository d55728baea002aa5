#include "lm/models/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/autodiff/checkpoint/checkpoint.h"
#include "engine/control/chain.h"
#include "lm/nn/feed_forward/gated_mlp.h"
#include "lm/nn/layers/linear.h"
#include "lm/nn/norms/rms_norm.h"
#include "lm/nn/precision.h"
#include "ops/elementwise/trigonometry.h"

namespace caldera {
namespace {

// One random stream per matrix: a layer's own ones, then those of the whole model.
enum LayerStream : std::uint64_t { kQ, kK, kV, kO, kGate, kUp, kDown, kTaken };
constexpr std::uint64_t kEmbeddingStream = 1'000'000;
constexpr std::uint64_t kHeadStream = 1'000'001;

/// The angles that a model's layers share: of all, or of those that do not slide, then of those that do.
std::vector<RotaryEmbedding> make_rotaries(const DecoderParts& parts) {
  std::vector<RotaryEmbedding> rotaries;
  const ModelConfig& c = parts.config();
  if (!parts.traits().rotary) return rotaries;
  rotaries.emplace_back(c.head_dim, c.max_position_embeddings, RopeParameters{c.rope_theta, c.rope_scaling},
                        parts.device());
  if (c.local_rope)
    rotaries.emplace_back(c.head_dim, c.max_position_embeddings, *c.local_rope, parts.device());
  return rotaries;
}

/// The value of the dtype that is nearest.
double rounded(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::bf16) return to_float(to_bfloat16(narrow));
  if (dtype == DType::f16) return to_float(to_half(narrow));
  return value;
}

}  // namespace

DecoderParts::DecoderParts(const ModelConfig& config, Device device, DecoderTraits traits)
    : config_(config), device_(device), traits_(std::move(traits)) {
  const std::string_view activation = config.hidden_act;  // which ones it may have is for the family to say
  config.validate({&activation, 1});
}

std::unique_ptr<Layer> DecoderParts::make_norm(std::int64_t width) const {
  return std::make_unique<RMSNorm>(width, config_.rms_norm_eps, device_, traits_.norm_weight);
}

std::unique_ptr<Projection> DecoderParts::make_projection(std::int64_t in, std::int64_t out, bool bias,
                                                          std::uint64_t seed, std::uint64_t stream) const {
  static_assert(kFirstFreeStream == kTaken);
  return std::make_unique<Linear>(in, out, bias, config_.initializer_range, mix_seed(seed, stream), device_);
}

AttentionConfig DecoderParts::attention_config(std::int64_t layer) const {
  const ModelConfig& c = config_;
  const LayerConfig place = c.layer(layer);
  AttentionConfig attention{c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim};
  attention.rotary.reset();
  if (traits_.rotary && place.rotary) attention.rotary = place.sliding && c.local_rope ? 1 : 0;
  attention.form = traits_.attention;
  if (place.sliding) attention.form.window = c.sliding_window;
  return attention;
}

std::unique_ptr<SelfAttention> DecoderParts::make_attention(std::int64_t layer, std::uint64_t seed) const {
  const ModelConfig& c = config_;
  const LayerBiases& biases = traits_.biases;
  const std::int64_t q_width = c.num_attention_heads * c.head_dim;
  const std::int64_t kv_width = c.num_key_value_heads * c.head_dim;
  AttentionExtras extras;
  if (traits_.attention.sinks)
    extras.sinks = LazyTensor::zeros(Shape{c.num_attention_heads}, DType::f32, device_);
  if (traits_.head_norm != DecoderTraits::HeadNorm::none) {
    extras.whole_width = traits_.head_norm == DecoderTraits::HeadNorm::all_heads;
    extras.q_norm = make_norm(extras.whole_width ? q_width : c.head_dim);
    extras.k_norm = make_norm(extras.whole_width ? kv_width : c.head_dim);
  }
  return std::make_unique<Attention>(attention_config(layer),
                                     make_projection(c.hidden_size, q_width, biases.q, seed, kQ),
                                     make_projection(c.hidden_size, kv_width, biases.k, seed, kK),
                                     make_projection(c.hidden_size, kv_width, biases.v, seed, kV),
                                     make_projection(q_width, c.hidden_size, biases.o, seed, kO),
                                     std::move(extras), traits_.names.projections);
}

std::unique_ptr<Layer> DecoderParts::make_mlp(std::int64_t /*layer*/, std::uint64_t seed) const {
  const ModelConfig& c = config_;
  const bool bias = traits_.biases.mlp;
  return std::make_unique<GatedMLP>(make_projection(c.hidden_size, c.intermediate_size, bias, seed, kGate),
                                    make_projection(c.hidden_size, c.intermediate_size, bias, seed, kUp),
                                    make_projection(c.intermediate_size, c.hidden_size, bias, seed, kDown),
                                    activation_of(c.hidden_act));
}

std::unique_ptr<DecoderLayer> DecoderParts::make_layer(std::int64_t layer, std::uint64_t seed) const {
  return std::make_unique<DecoderLayer>(*this, layer, seed);
}

DecoderLayer::DecoderLayer(const DecoderParts& parts, std::int64_t layer, std::uint64_t seed)
    : attention_name_(parts.traits().names.attention),
      mlp_name_(parts.traits().names.mlp),
      attention_(parts.make_attention(layer, seed)),
      mlp_(parts.make_mlp(layer, seed)),
      residual_multiplier_(parts.traits().residual_multiplier),
      norms_of_sums_(false) {
  const auto make = [&](const std::string& name) -> NamedNorm {
    return {name, name.empty() ? nullptr : parts.make_norm(parts.config().hidden_size)};
  };
  const LayerNorms norms = parts.norms_of(layer);
  norms_of_sums_ = norms.of_sums;
  before_attention_ = make(norms.before_attention);
  after_attention_ = make(norms.after_attention);
  before_mlp_ = make(norms.before_mlp);
  after_mlp_ = make(norms.after_mlp);
}

LazyTensor DecoderLayer::added(const LazyTensor& x, const LazyTensor& y, const NamedNorm& norm) const {
  const auto plus = [&](const LazyTensor& part) {
    return residual_multiplier_ == 1 ? x + part : x + part * residual_multiplier_;
  };
  if (!norm.norm) return plus(y);
  return norms_of_sums_ ? norm.norm->forward(plus(y)) : plus(norm.norm->forward(y));
}

LazyTensor DecoderLayer::forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) {
  const auto normed = [](const NamedNorm& norm, const LazyTensor& y) {
    return norm.norm ? norm.norm->forward(y) : y;
  };
  const LazyTensor attended =
      added(x, attention_->forward(normed(before_attention_, x), context, layer), after_attention_);
  return added(attended, mlp_->forward(normed(before_mlp_, attended)), after_mlp_);
}

void DecoderLayer::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.module(join_name(prefix, attention_name_), *attention_);
  visitor.module(mlp_name_.empty() ? prefix : join_name(prefix, mlp_name_), *mlp_);
  for (const NamedNorm* norm : {&before_attention_, &after_attention_, &before_mlp_, &after_mlp_})
    if (norm->norm) visitor.module(join_name(prefix, norm->name), *norm->norm);
}

Decoder::Decoder(const DecoderParts& parts, std::uint64_t seed)
    : CausalLM(parts.device()),
      traits_(parts.traits()),
      rotaries_(make_rotaries(parts)),
      embed_tokens_(parts.config().vocab_size, parts.config().hidden_size, parts.config().initializer_range,
                    mix_seed(seed, kEmbeddingStream), parts.device()),
      norm_(traits_.names.norm.empty() ? nullptr : parts.make_norm(parts.config().hidden_size)) {
  const ModelConfig& config = parts.config();
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i)
    layers_.push_back(parts.make_layer(i, mix_seed(seed, static_cast<std::uint64_t>(i))));
  if (config.tie_word_embeddings)
    lm_head_ = std::make_unique<TiedHead>(embed_tokens_);
  else
    lm_head_ = std::make_unique<Linear>(config.hidden_size, config.vocab_size, false,
                                        config.initializer_range, mix_seed(seed, kHeadStream), device());
}

LazyTensor Decoder::embed(const LazyTensor& ids, const TokenPositions& /*positions*/) {
  LazyTensor x = embed_tokens_(ids);
  if (is_16bit_float(dtype())) x = in_dtype(x, dtype());
  if (traits_.embedding_multiplier == 1) return x;
  return x * (traits_.rounded_multiplier ? rounded(traits_.embedding_multiplier, dtype())
                                         : traits_.embedding_multiplier);
}

Decoder::Inside Decoder::inside_of_layers() const {
  const auto is_checkpointed = [](const std::optional<Keep>& keep) { return keep.has_value(); };
  if (!is_training() || std::ranges::none_of(checkpointing(), is_checkpointed)) return Inside::kept;
  const auto keeps_nothing = [](const std::optional<Keep>& keep) { return keep && keep->is_nothing(); };
  const bool all =
      checkpointing().size() >= layers_.size() && std::ranges::all_of(checkpointing(), keeps_nothing);
  return all ? Inside::computed_again : Inside::differs;
}

LazyTensor Decoder::hidden_states(const LazyTensor& ids, AttentionCache* cache) {
  if (ids.rank() != 2 || ids.shape(1) == 0)
    throw ShapeError(
        fmt::format("{}: ids {} are not (batch, positions)", config().architecture, ids.shape().to_string()));
  if (ids.dtype() != DType::i32)
    throw DTypeError(fmt::format("{}: ids are {}, expected int32", config().architecture, name(ids.dtype())));
  const AttentionContext context = make_attention_context(rotaries_, ids.shape(0), ids.shape(1), cache);
  LazyTensor x = embed(ids, context.positions);
  std::vector<UnaryFunction> layers;
  layers.reserve(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers.emplace_back([&, i](const LazyTensor& a) {
      return layers_[i]->forward(a, context, static_cast<std::int64_t>(i));
    });
  }
  const Inside inside = inside_of_layers();
  const bool as_scan =
      layers_as_scan() == LayersAsScan::always
          ? inside != Inside::differs
          : layers_as_scan() == LayersAsScan::checkpointed && inside == Inside::computed_again;
  if (as_scan && (cache == nullptr || cache->keeps_nothing())) {
    x = chain(layers, x, {.checkpointed = inside == Inside::computed_again});
  } else {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const bool is_checkpointed = is_training() && i < checkpointing().size() && checkpointing()[i];
      x = is_checkpointed ? checkpoint(layers[i], *checkpointing()[i])(x) : layers[i](x);
    }
  }
  if (cache != nullptr) cache->finish();
  return norm_ ? norm_->forward(x) : x;
}

LazyTensor Decoder::finished(const LazyTensor& products, const DecoderTraits& traits) {
  LazyTensor logits = products;
  if (traits.logits_divisor != 1) logits = logits / traits.logits_divisor;
  if (traits.logits_softcap) logits = tanh(logits / *traits.logits_softcap) * *traits.logits_softcap;
  return logits;
}

LazyTensor Decoder::logits(const LazyTensor& hidden) { return finished(lm_head_->forward(hidden), traits_); }

std::optional<LinearHead> Decoder::linear_head() const {
  const std::optional<LazyTensor> weight = lm_head_->matrix();
  if (!weight) return std::nullopt;
  return LinearHead{*weight,
                    [traits = traits_](const LazyTensor& products) { return finished(products, traits); }};
}

std::string Decoder::stored_name(const std::string& name) const {
  constexpr std::string_view kModule = "model.";
  if (!module_in_files().empty()) return module_in_files() + name;
  return name.starts_with(kModule) ? name.substr(kModule.size()) : name;
}

std::vector<std::optional<std::int64_t>> Decoder::attention_windows() const {
  std::vector<std::optional<std::int64_t>> windows;
  for (std::int64_t i = 0; i < config().num_hidden_layers; ++i)
    windows.push_back(config().layer(i).sliding ? config().sliding_window : std::nullopt);
  return windows;
}

void Decoder::visit(const std::string& prefix, ParameterVisitor& visitor) {
  const DecoderNames& names = traits_.names;
  visitor.module(join_name(prefix, names.embedding), embed_tokens_);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    visitor.module(join_name(prefix, fmt::format("{}.{}", names.layers, i)), *layers_[i]);
  if (norm_) visitor.module(join_name(prefix, names.norm), *norm_);
  visitor.projection(join_name(prefix, "lm_head"), lm_head_);
  visit_score_head(prefix, visitor);
}

}  // namespace caldera
