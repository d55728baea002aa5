// Decoder: the parts that decoder-only families share, so that a family needs one more file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/models/causal_lm.h"
#include "training/nn/attention.h"
#include "training/nn/embedding.h"
#include "training/nn/linear.h"
#include "training/nn/rotary.h"

namespace caldera {

/// Says which linear maps of a layer have a bias.
struct LayerBiases {
  bool q = false;
  bool k = false;
  bool v = false;
  bool o = false;
  bool mlp = false;  ///< all three of the feed-forward layer
};

class DecoderLayer;

/// Makes the parts of a decoder. What is here is Llama's: RMSNorm, grouped-query attention with rotary
/// positions, a gated MLP with the configuration's hidden_act. A family whose parts differ derives from it.
/// Weights are random and not computed yet: matrices normal(0, initializer_range), norms one, biases zero; a
/// function of the layer's seed alone.
class DecoderParts {
 public:
  /// Keeps a reference to `config`. Throws ValueError for a bad one.
  DecoderParts(const ModelConfig& config, Device device, const LayerBiases& biases = {});
  virtual ~DecoderParts() = default;
  DecoderParts(const DecoderParts&) = delete;
  DecoderParts& operator=(const DecoderParts&) = delete;

  const ModelConfig& config() const { return config_; }
  Device device() const { return device_; }

  /// The norms of every layer and the one after the last: over the last axis, `width` wide.
  virtual std::unique_ptr<Layer> make_norm(std::int64_t width) const;
  virtual std::unique_ptr<SelfAttention> make_attention(std::uint64_t seed) const;
  /// The feed-forward module. Throws ValueError for a hidden_act that activation_of() does not know.
  virtual std::unique_ptr<Layer> make_mlp(std::uint64_t seed) const;
  virtual std::unique_ptr<DecoderLayer> make_layer(std::uint64_t seed) const;

 protected:
  /// Streams of a layer's seed from here on are a family's own; those below are the matrices of
  /// make_attention and make_mlp.
  static constexpr std::uint64_t kFirstFreeStream = 7;
  /// A matrix of the layer with this seed. `stream` tells its matrices apart: each has one of its own.
  std::unique_ptr<Projection> make_projection(std::int64_t in, std::int64_t out, bool bias,
                                              std::uint64_t seed, std::uint64_t stream) const;

 private:
  const ModelConfig& config_;
  Device device_;
  LayerBiases biases_;
};

/// One pre-norm layer: x + attention(norm(x)), then x + mlp(norm(x)). A family whose layers are put together
/// otherwise derives from it, and makes them in DecoderParts::make_layer.
class DecoderLayer : public Module {
 public:
  DecoderLayer(const DecoderParts& parts, std::uint64_t seed);

  /// x (B, T, hidden) to the same shape. `layer` is this layer's place in the cache.
  virtual LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer);
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 protected:
  std::unique_ptr<SelfAttention> self_attn_;
  std::unique_ptr<Layer> mlp_;
  std::unique_ptr<Layer> input_layernorm_;
  std::unique_ptr<Layer> post_attention_layernorm_;
};

/// Embedding, layers, norm and head (or, where embeddings are tied, their transpose), with rotary positions.
/// Widths and head counts are free, key-value heads grouped or not; hidden_size need not be heads * head_dim.
class Decoder : public CausalLM {
 public:
  LazyTensor hidden_states(const LazyTensor& ids, AttentionCache* cache = nullptr) override;
  LazyTensor logits(const LazyTensor& hidden) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 protected:
  /// Random weights as Hugging Face initialises them, not computed yet: a function of the seed alone.
  Decoder(const DecoderParts& parts, std::uint64_t seed);

  /// The embeddings (B, T, hidden) of the ids as the first layer gets them, in the model's dtype: a family
  /// that scales them overrides it. Logits of tied embeddings are not scaled by it.
  virtual LazyTensor transform_embeddings(const LazyTensor& embeddings) const { return embeddings; }

 private:
  RotaryEmbedding rotary_;
  Embedding embed_tokens_;
  std::vector<std::unique_ptr<DecoderLayer>> layers_;
  std::unique_ptr<Layer> norm_;
  std::unique_ptr<Linear> lm_head_;  // null when tied to embed_tokens_
};

}  // namespace caldera
