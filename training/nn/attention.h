// Causal grouped-query attention (Ainslie et al. 2023) as in Hugging Face's LlamaAttention.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ops/nn/attention.h"
#include "training/nn/kv_cache.h"
#include "training/nn/linear.h"
#include "training/nn/rotary.h"

namespace caldera {

/// Holds the tensors that all layers of one forward call share.
struct AttentionContext {
  std::vector<RotaryAngles> angles;  // of each rotary embedding that the model has, in its order
  LazyTensor mask;                   // boolean (T, S): j <= i + position
  KVCache* cache = nullptr;  // begun: keys are its buffers (S = capacity); or null: those of the call (S = T)
  std::int64_t position = 0;  // of the call's first row among the keys
  LazyTensor present = {};    // boolean (B, S): keys that are no padding; undefined where all are
};

/// The context of a forward call over `length` new positions. With a cache, positions begin at
/// cache->position(), and cache->begin(length) is called. Where a rotary embedding depends on the length of
/// the text, that is the cache's capacity, or `length` without a cache.
AttentionContext make_attention_context(std::span<RotaryEmbedding> rotaries, std::int64_t length,
                                        KVCache* cache, Device device);
AttentionContext make_attention_context(RotaryEmbedding& rotary, std::int64_t length, KVCache* cache,
                                        Device device);

/// What a layer's attention computes beside softmax(q k^T * scale) v.
struct AttentionSpec {
  double scale = 1;  ///< of the products
  /// A query at position i looks at the keys j with i - window < j, itself among them; where attention is
  /// bidirectional, also j < i + window.
  std::optional<std::int64_t> window = {};
  /// Scaled products s become softcap * tanh(s / softcap), before they are masked.
  std::optional<double> softcap = {};
  /// (heads): a score of each head's own that takes part in the softmax, without a value (gpt-oss). May be
  /// undefined.
  LazyTensor sinks = {};
  bool bidirectional = false;  ///< queries look at later keys too
};

/// softmax(q k^T * scale, masked) v. q (B, H, T, D), k and v (B, K, S, D) with H a multiple of K: query head
/// h reads head h / (H / K). mask (T, S). Returns (B, H, T, D). A row without any permitted key gives the
/// mean of v, not NaN.
LazyTensor grouped_query_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                   const LazyTensor& mask, double scale);

/// (B, T, heads * D) to (B, heads, T, D), and back.
LazyTensor split_heads(const LazyTensor& x, std::int64_t heads);
LazyTensor merge_heads(const LazyTensor& x);

/// The heart of an attention layer: q (B, H, T, D), and k and v (B, K, T, D) of the call's own positions, q
/// and k already rotated. Writes k and v to the context's cache, if it has one, and attends to the positions
/// that context and `spec` permit. `layer` is the layer's place in the cache. Returns (B, H, T, D).
LazyTensor attend(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                  const AttentionContext& context, std::int64_t layer, const AttentionSpec& spec);

/// The interface of a decoder layer to its attention.
class SelfAttention : public Module {
 public:
  /// x (B, T, hidden) to the same shape. `layer` is this layer's place in the cache.
  virtual LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) = 0;
};

struct AttentionConfig {
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // hidden_size need not be heads * head_dim
};

/// Projections "q_proj", "k_proj", "v_proj", "o_proj", each with or without a bias.
class Attention final : public SelfAttention {
 public:
  /// Throws ShapeError when a projection does not fit the configuration, ValueError when heads is not a
  /// multiple of kv_heads.
  Attention(const AttentionConfig& config, std::unique_ptr<Projection> q, std::unique_ptr<Projection> k,
            std::unique_ptr<Projection> v, std::unique_ptr<Projection> o);

  LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  std::unique_ptr<Projection> q_proj;
  std::unique_ptr<Projection> k_proj;
  std::unique_ptr<Projection> v_proj;
  std::unique_ptr<Projection> o_proj;

 private:
  AttentionConfig config_;
};

}  // namespace caldera
