// Causal grouped-query attention (Ainslie et al. 2023) as in Hugging Face's LlamaAttention.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lm/nn/attention/rotary.h"
#include "lm/nn/caches/kv_cache.h"
#include "lm/nn/layers/linear.h"
#include "ops/nn/attention.h"

namespace caldera {

/// Holds the tensors that all layers of one forward call share.
struct AttentionContext {
  std::vector<RotaryAngles> angles;  // of each rotary embedding that the model has, in its order
  TokenPositions positions;          // of the call's tokens
  AttentionCache* cache = nullptr;   // begun; or null: the keys are those of the call, from position 0
  LazyTensor present =
      {};  // without a cache: boolean (B, T), keys that are no padding; undefined where all are
};

/// The context of a forward call over ids (batch, length); cache->begin is called. Where a rotary embedding
/// depends on the length of the sequence, that is what the cache says (TokenPositions::longest), or `length`
/// without a cache.
AttentionContext make_attention_context(std::span<RotaryEmbedding> rotaries, std::int64_t batch,
                                        std::int64_t length, AttentionCache* cache);
AttentionContext make_attention_context(RotaryEmbedding& rotary, std::int64_t batch, std::int64_t length,
                                        AttentionCache* cache);

/// (B, T, heads * D) to (B, heads, T, D), and back.
LazyTensor split_heads(const LazyTensor& x, std::int64_t heads);
LazyTensor merge_heads(const LazyTensor& x);

/// The heart of an attention layer: q (B, H, T, D), and k and v (B, K, T, D) of the call's own positions, q
/// and k already rotated; H is a multiple of K, and query head h reads head h / (H / K). Hands k and v to the
/// context's cache, if it has one, and attends to the positions that context and `form` permit. `layer` is
/// the layer's place in the cache, `sinks` (H) what the form's sinks are. Returns (B, H, T, D).
LazyTensor attend(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                  const AttentionContext& context, std::int64_t layer, const AttentionForm& form,
                  const LazyTensor& sinks = {});

/// The interface of a decoder layer to its attention.
class SelfAttention : public Module {
 public:
  /// x (B, T, hidden) to the same shape. `layer` is this layer's place in the cache.
  virtual LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) = 0;
};

/// Says how large an attention layer is, and what it computes.
struct AttentionConfig {
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< hidden_size need not be heads * head_dim
  /// The place of its angles in AttentionContext::angles; none where positions do not turn anything.
  std::optional<std::size_t> rotary = 0;
  AttentionForm form = {};
};

/// Lists what an attention layer may have besides its projections.
struct AttentionExtras {
  std::unique_ptr<Layer> q_norm = {};  ///< "q_norm", before queries are rotated; or null
  std::unique_ptr<Layer> k_norm = {};  ///< "k_norm"
  bool whole_width = false;            ///< norms are over all heads together, not each head by itself
  LazyTensor sinks = {};               ///< parameter "sinks" (heads), where the form has them
};

/// Computes what attention does between its projections, whatever these are.
class AttentionHeads final : public Module {
 public:
  /// Throws ValueError when heads is not a multiple of kv_heads.
  AttentionHeads(const AttentionConfig& config, AttentionExtras extras);

  /// q (B, T, heads * head_dim), k and v (B, T, kv_heads * head_dim), to (B, T, heads * head_dim).
  LazyTensor forward(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                     const AttentionContext& context, std::int64_t layer);
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  LazyTensor prepared(const LazyTensor& x, std::int64_t heads, Layer* norm,
                      const AttentionContext& context) const;

  AttentionConfig config_;
  std::unique_ptr<Layer> q_norm_;
  std::unique_ptr<Layer> k_norm_;
  bool whole_width_;
  Weight sinks_;
};

/// The names of attention's projections.
struct AttentionNames {
  std::string q = "q_proj";
  std::string k = "k_proj";
  std::string v = "v_proj";
  std::string o = "o_proj";
};

/// Projections "q_proj", "k_proj", "v_proj", "o_proj", or as the family names them, each with or without a
/// bias.
class Attention final : public SelfAttention {
 public:
  /// Throws ShapeError when a projection does not fit the configuration, ValueError when heads is not a
  /// multiple of kv_heads.
  Attention(const AttentionConfig& config, std::unique_ptr<Projection> q, std::unique_ptr<Projection> k,
            std::unique_ptr<Projection> v, std::unique_ptr<Projection> o, AttentionExtras extras = {},
            AttentionNames names = {});

  LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  std::unique_ptr<Projection> q_proj;
  std::unique_ptr<Projection> k_proj;
  std::unique_ptr<Projection> v_proj;
  std::unique_ptr<Projection> o_proj;

 private:
  AttentionHeads heads_;
  AttentionNames names_;
};

/// One projection to queries, keys and values side by side, and one back, under the family's names:
/// "qkv_proj" and "o_proj", say.
class FusedAttention final : public SelfAttention {
 public:
  /// Throws as Attention does.
  FusedAttention(const AttentionConfig& config, std::string in_name, std::unique_ptr<Projection> in,
                 std::string out_name, std::unique_ptr<Projection> out);

  LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  AttentionConfig config_;
  std::string in_name_;
  std::string out_name_;
  std::unique_ptr<Projection> in_;
  std::unique_ptr<Projection> out_;
  AttentionHeads heads_;
};

}  // namespace caldera
