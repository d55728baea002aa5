// Decoder: the parts that decoder-only families share, so that a family needs one more file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "training/models/causal_lm.h"
#include "training/nn/attention.h"
#include "training/nn/embedding.h"
#include "training/nn/rms_norm.h"
#include "training/nn/rotary.h"

namespace caldera {

/// One pre-norm layer: x + attention(norm(x)), then x + mlp(norm(x)). A family whose layers differ derives
/// from it, or gives it another attention or feed-forward module.
class DecoderLayer : public Module {
 public:
  DecoderLayer(const ModelConfig& config, std::unique_ptr<SelfAttention> attention,
               std::unique_ptr<Layer> mlp, Device device);

  /// x (B, T, hidden) to the same shape. `layer` is this layer's place in the cache.
  virtual LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer);
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 protected:
  std::unique_ptr<SelfAttention> self_attn_;
  std::unique_ptr<Layer> mlp_;
  RMSNorm input_layernorm_;
  RMSNorm post_attention_layernorm_;
};

/// Says which linear maps of a layer have a bias.
struct LayerBiases {
  bool q = false;
  bool k = false;
  bool v = false;
  bool o = false;
  bool mlp = false;  ///< all three of the feed-forward layer
};

/// The parts of a layer, and the layer of both, with random weights that are not computed yet: matrices
/// normal(0, initializer_range), norms one, biases zero; a function of the layer's seed alone.
std::unique_ptr<SelfAttention> make_attention(const ModelConfig& config, const LayerBiases& biases,
                                              std::uint64_t seed, Device device);
std::unique_ptr<Layer> make_swiglu(const ModelConfig& config, bool bias, std::uint64_t seed, Device device);
std::unique_ptr<DecoderLayer> make_decoder_layer(const ModelConfig& config, const LayerBiases& biases,
                                                 std::uint64_t seed, Device device);
/// A matrix for a module of the family's own; `stream` tells the matrices of a layer apart (0 to 6 are
/// taken).
std::unique_ptr<Projection> make_projection(const ModelConfig& config, std::int64_t in, std::int64_t out,
                                            bool bias, std::uint64_t seed, std::uint64_t stream,
                                            Device device);

/// Embedding, layers, norm and head (or, where embeddings are tied, their transpose), with rotary positions.
/// Widths and head counts are free, key-value heads grouped or not; hidden_size need not be heads * head_dim.
class Decoder : public CausalLM {
 public:
  LazyTensor hidden_states(const LazyTensor& ids, KVCache* cache = nullptr) override;
  LazyTensor logits(const LazyTensor& hidden) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 protected:
  using MakeLayer = std::function<std::unique_ptr<DecoderLayer>(std::uint64_t seed)>;
  /// Random weights as Hugging Face initialises them, not computed yet: a function of the seed alone. Throws
  /// ValueError for a bad configuration.
  Decoder(const ModelConfig& config, Device device, std::uint64_t seed, const MakeLayer& make_layer);

 private:
  RotaryEmbedding rotary_;
  Embedding embed_tokens_;
  std::vector<std::unique_ptr<DecoderLayer>> layers_;
  RMSNorm norm_;
  std::unique_ptr<Linear> lm_head_;  // null when tied to embed_tokens_
};

}  // namespace caldera
