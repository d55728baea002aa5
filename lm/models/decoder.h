// Decoder: the parts that decoder-only families share, so that a family needs one more file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lm/models/causal_lm.h"
#include "lm/nn/attention/attention.h"
#include "lm/nn/attention/rotary.h"
#include "lm/nn/layers/embedding.h"
#include "lm/nn/layers/linear.h"
#include "lm/nn/norms/rms_norm.h"

namespace caldera {

/// Says which linear maps of a layer have a bias.
struct LayerBiases {
  bool q = false;
  bool k = false;
  bool v = false;
  bool o = false;
  bool mlp = false;  ///< all three of the feed-forward layer
};

/// The names of a layer's norms, in front of its two parts and behind them; empty where there is none.
struct LayerNorms {
  std::string before_attention = "input_layernorm";
  std::string after_attention = {};
  std::string before_mlp = "post_attention_layernorm";
  std::string after_mlp = {};
  bool of_sums = false;  ///< those behind: norm(x + part(x)), in place of x + norm(part(x))
};

/// The names that a family's checkpoints have for the parts of a model.
struct DecoderNames {
  std::string embedding = "model.embed_tokens";
  std::string layers = "model.layers";
  std::string norm = "model.norm";  ///< empty where there is none
  std::string attention = "self_attn";
  std::string mlp = "mlp";  ///< empty where its projections are the layer's own
  AttentionNames projections = {};
};

/// Says what a family of decoders computes otherwise than Llama. Each member is what Llama does where it is
/// left out.
struct DecoderTraits {
  LayerBiases biases = {};
  LayerNorms norms = {};
  DecoderNames names = {};
  NormWeight norm_weight = NormWeight::plain;
  enum class HeadNorm : std::uint8_t { none, each_head, all_heads } head_norm = HeadNorm::none;
  double embedding_multiplier = 1;            ///< of the embeddings that the first layer gets
  bool rounded_multiplier = false;            ///< that one is rounded to the model's dtype
  double residual_multiplier = 1;             ///< of what attention and feed-forward module add
  double logits_divisor = 1;                  ///< what logits are divided by
  std::optional<double> logits_softcap = {};  ///< logits l become c tanh(l / c)
  AttentionForm attention = {};               ///< its window is that of the configuration's layers
  bool rotary = true;
};

class DecoderLayer;

/// Makes the parts of a decoder: RMSNorm, grouped-query attention with rotary positions, a gated MLP with the
/// configuration's hidden_act, as the traits say. A family whose parts differ more derives from it. Weights
/// are random and not computed yet: matrices normal(0, initializer_range), norms one, biases zero; a function
/// of the layer's seed alone.
class DecoderParts {
 public:
  /// Keeps a reference to `config`. Throws ValueError for a bad one.
  DecoderParts(const ModelConfig& config, Device device, DecoderTraits traits = {});
  virtual ~DecoderParts() = default;
  DecoderParts(const DecoderParts&) = delete;
  DecoderParts& operator=(const DecoderParts&) = delete;

  const ModelConfig& config() const { return config_; }
  const DecoderTraits& traits() const { return traits_; }
  Device device() const { return device_; }

  /// The norms of the layer with this index: those of the traits.
  virtual LayerNorms norms_of(std::int64_t /*layer*/) const { return traits_.norms; }
  /// A norm over the last axis, `width` wide.
  virtual std::unique_ptr<Layer> make_norm(std::int64_t width) const;
  /// The attention of the layer with this index and seed; and so on.
  virtual std::unique_ptr<SelfAttention> make_attention(std::int64_t layer, std::uint64_t seed) const;
  /// The feed-forward module. Throws ValueError for a hidden_act that activation_of() does not know.
  virtual std::unique_ptr<Layer> make_mlp(std::int64_t layer, std::uint64_t seed) const;
  virtual std::unique_ptr<DecoderLayer> make_layer(std::int64_t layer, std::uint64_t seed) const;

 protected:
  /// Streams of a layer's seed from here on are a family's own; those below are the matrices of
  /// make_attention and make_mlp.
  static constexpr std::uint64_t kFirstFreeStream = 7;
  /// A matrix of the layer with this seed. `stream` tells its matrices apart: each has one of its own.
  virtual std::unique_ptr<Projection> make_projection(std::int64_t in, std::int64_t out, bool bias,
                                                      std::uint64_t seed, std::uint64_t stream) const;
  /// Widths, heads, window, angles and the rest of the layer's attention.
  AttentionConfig attention_config(std::int64_t layer) const;

 private:
  const ModelConfig& config_;
  Device device_;
  DecoderTraits traits_;
};

/// One layer: x + attention(x), then x + mlp(x), with the norms that the traits name.
class DecoderLayer : public Module {
 public:
  DecoderLayer(const DecoderParts& parts, std::int64_t layer, std::uint64_t seed);

  /// x (B, T, hidden) to the same shape. `layer` is this layer's place in the cache.
  virtual LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer);
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  struct NamedNorm {
    std::string name;
    std::unique_ptr<Layer> norm;  // null where there is none
  };
  LazyTensor added(const LazyTensor& x, const LazyTensor& y, const NamedNorm& norm) const;

  std::string attention_name_;
  std::string mlp_name_;
  std::unique_ptr<SelfAttention> attention_;
  std::unique_ptr<Layer> mlp_;
  NamedNorm before_attention_;
  NamedNorm after_attention_;
  NamedNorm before_mlp_;
  NamedNorm after_mlp_;
  double residual_multiplier_;
  bool norms_of_sums_;
};

/// Embedding, layers, norm and head (or, where embeddings are tied, their transpose), with rotary positions.
/// Widths and head counts are free, key-value heads grouped or not; hidden_size need not be heads * head_dim.
class Decoder : public CausalLM {
 public:
  LazyTensor hidden_states(const LazyTensor& ids, AttentionCache* cache = nullptr) override;
  LazyTensor logits(const LazyTensor& hidden) override;
  std::optional<LinearHead> linear_head() const override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;
  std::vector<std::optional<std::int64_t>> attention_windows() const override;

 protected:
  /// Random weights as Hugging Face initialises them, not computed yet: a function of the seed alone.
  Decoder(const DecoderParts& parts, std::uint64_t seed);

  /// The embeddings (B, T, hidden) of ids at their positions, in the model's dtype, as the first layer gets
  /// them. Logits of tied embeddings are not scaled by their multiplier.
  virtual LazyTensor embed(const LazyTensor& ids, const TokenPositions& positions);
  /// Without "model.", as files of the model without its head have it.
  std::string stored_name(const std::string& name) const override;

 private:
  /// Says what gradients have of the inside of the layers, as checkpointing() asks for.
  enum class Inside : std::uint8_t { kept, computed_again, differs };
  Inside inside_of_layers() const;
  /// Logits from products of hidden states with the head's matrix.
  static LazyTensor finished(const LazyTensor& products, const DecoderTraits& traits);

  DecoderTraits traits_;
  std::vector<RotaryEmbedding> rotaries_;
  Embedding embed_tokens_;
  std::vector<std::unique_ptr<DecoderLayer>> layers_;
  std::unique_ptr<Layer> norm_;
  std::unique_ptr<Projection> lm_head_;
};

/// A decoder that is made of its parts and nothing else: `Parts(config, device, traits)`.
template <class Parts = DecoderParts>
std::unique_ptr<CausalLM> make_decoder(const ModelConfig& config, const DecoderTraits& traits, Device device,
                                       std::uint64_t seed);

namespace detail {

/// The decoder of any family whose configuration is a ModelConfig and the fields it keeps.
class ConfiguredDecoder final : public Decoder {
 public:
  ConfiguredDecoder(const ModelConfig& config, const DecoderParts& parts, std::uint64_t seed)
      : Decoder(parts, seed), config_(config) {}

  const ModelConfig& config() const override { return config_; }

 private:
  ModelConfig config_;
};

}  // namespace detail

template <class Parts>
std::unique_ptr<CausalLM> make_decoder(const ModelConfig& config, const DecoderTraits& traits, Device device,
                                       std::uint64_t seed) {
  return std::make_unique<detail::ConfiguredDecoder>(config, Parts(config, device, traits), seed);
}

}  // namespace caldera
