// Llama: the pre-norm decoder of Hugging Face's LlamaForCausalLM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "training/io/model_config.h"
#include "training/nn/attention.h"
#include "training/nn/embedding.h"
#include "training/nn/kv_cache.h"
#include "training/nn/rms_norm.h"
#include "training/nn/rotary.h"
#include "training/nn/swiglu.h"

namespace caldera {

class StagedFiles;

/// One layer: x + attention(norm(x)), then x + mlp(norm(x)).
class LlamaLayer final : public Module {
 public:
  LlamaLayer(const ModelConfig& config, std::uint64_t seed, Device device);

  LazyTensor forward(const LazyTensor& x, const AttentionContext& context, std::int64_t layer);
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  Attention self_attn;
  SwiGLU mlp;

 private:
  RMSNorm input_layernorm_;
  RMSNorm post_attention_layernorm_;
};

/// A Llama-style decoder with any widths, head counts and (grouped or not) key-value heads; hidden_size need
/// not be heads * head_dim. Parameter names are Hugging Face's. Activations have the model's dtype: see
/// set_dtype.
class Llama final : public Module {
 public:
  /// Random weights as Hugging Face initialises them: matrices normal(0, initializer_range), norms one,
  /// biases zero; a function of the seed alone. Throws ValueError for a bad configuration.
  Llama(const ModelConfig& config, Device device, std::uint64_t seed);

  /// Reads a model folder: config.json and model.safetensors or its shards. Weights and activations get
  /// `dtype`, whatever the files hold. The model is in evaluation mode. Throws FileError for a tensor that is
  /// missing, of the wrong shape, or unexpected (rotary buffers, and lm_head.weight of a tied model, are
  /// skipped).
  static std::unique_ptr<Llama> load(const std::filesystem::path& dir, Device device,
                                     DType dtype = DType::f32);
  /// Writes config.json and model.safetensors, both before either is replaced; creates the folder. The
  /// weights are the base model's: an adapter is saved by save_adapter.
  void save(const std::filesystem::path& dir);
  /// The same together with other files: `files` is for the caller to commit.
  void save(const std::filesystem::path& dir, StagedFiles& files);

  /// ids (B, T) i32 to logits (B, T, vocabulary). With a cache, positions begin at cache->position() and the
  /// cache advances by T: evaluate cache->state() together with the logits. Throws ShapeError unless ids are
  /// 2-D, ValueError when the positions exceed max_position_embeddings or the cache's capacity.
  LazyTensor forward(const LazyTensor& ids, KVCache* cache = nullptr);
  /// forward in two steps: the hidden states after the last norm (B, T, hidden), and any of them to logits.
  LazyTensor hidden_states(const LazyTensor& ids, KVCache* cache = nullptr);
  LazyTensor logits(const LazyTensor& hidden);

  /// ids as a (1, T) or (B, T) tensor on the model's device. Throws ValueError naming the first id outside of
  /// the vocabulary and its position, ShapeError unless batch divides their number.
  LazyTensor make_ids(std::span<const std::int32_t> ids, std::int64_t batch = 1) const;
  /// An empty cache that fits this model. Throws ValueError for a capacity above max_position_embeddings.
  std::unique_ptr<KVCache> make_cache(std::int64_t capacity, std::int64_t batch = 1) const;

  void visit(const std::string& prefix, ParameterVisitor& visitor) override;
  /// Calls `visitor` with the path ("model.layers.0.self_attn.q_proj"), the name ("q_proj") and the slot of
  /// each projection of each layer, in a fixed order. lm_head is not among them. A slot may be assigned to.
  using ProjectionVisitor = std::function<void(const std::string& path, const std::string& name,
                                               std::unique_ptr<Projection>& slot)>;
  void visit_projections(const ProjectionVisitor& visitor);

  /// Computes in `dtype` (f32, f16 or bf16; see training/nn/precision.h) from now on. Parameters that are not
  /// trainable are converted to it and evaluated; trainable ones keep their dtype. Throws DTypeError for
  /// another type, or where the device does not compute with it.
  void set_dtype(DType dtype);
  DType dtype() const { return dtype_; }

  const ModelConfig& config() const { return config_; }
  Device device() const { return device_; }

 private:
  struct Unset {};
  /// The structure, with weights not yet computed.
  Llama(Unset, const ModelConfig& config, Device device, std::uint64_t seed);
  void check_dtype(DType dtype) const;

  ModelConfig config_;
  Device device_;
  DType dtype_ = DType::f32;
  RotaryEmbedding rotary_;
  Embedding embed_tokens_;
  std::vector<std::unique_ptr<LlamaLayer>> layers_;
  RMSNorm norm_;
  std::unique_ptr<Linear> lm_head_;  // null when tied to embed_tokens_
};

}  // namespace caldera
