// Qwen of the eager API: Qwen2's decoder, and its parts by themselves.
#pragma once

#include <cstdint>
#include <memory>

#include "eager/language_model.h"
#include "eager/tensor.h"
#include "lm/nn/attention/attention.h"
#include "lm/nn/module.h"

namespace caldera {
class DecoderLayer;
}

namespace caldera::v1 {

/// Self-attention with grouped queries and rotary positions. A part of a model, which it keeps.
class QwenAttention {
 public:
  /// x (B, T, hidden), normed, at positions 0 to T - 1, to the same shape: causal.
  Tensor forward(const Tensor& x) const;

 private:
  friend class QwenDecoderLayer;
  QwenAttention(std::shared_ptr<CausalLM> model, SelfAttention& attention, std::int64_t layer)
      : model_(std::move(model)), attention_(&attention), layer_(layer) {}
  std::shared_ptr<CausalLM> model_;
  SelfAttention* attention_;
  std::int64_t layer_;
};

/// The feed-forward part: down(silu(gate(x)) * up(x)). A part of a model, which it keeps.
class QwenMLP {
 public:
  /// x (..., hidden) to the same shape.
  Tensor forward(const Tensor& x) const;

 private:
  friend class QwenDecoderLayer;
  QwenMLP(std::shared_ptr<CausalLM> model, Layer& mlp) : model_(std::move(model)), mlp_(&mlp) {}
  std::shared_ptr<CausalLM> model_;
  Layer* mlp_;
};

/// One layer: x + attention(norm(x)), then x + mlp(norm(x)).
class QwenDecoderLayer {
 public:
  /// x (B, T, hidden) at positions 0 to T - 1 to the same shape.
  Tensor forward(const Tensor& x) const;
  QwenAttention attention() const;
  QwenMLP mlp() const;

 private:
  friend class Qwen;
  QwenDecoderLayer(std::shared_ptr<CausalLM> model, DecoderLayer& decoder, std::int64_t layer)
      : model_(std::move(model)), decoder_(&decoder), layer_(layer) {}
  std::shared_ptr<CausalLM> model_;
  DecoderLayer* decoder_;
  std::int64_t layer_;
};

/// Hugging Face's Qwen2ForCausalLM.
class Qwen : public LanguageModel {
 public:
  /// Throws ModelError (InvalidConfig) for a configuration of another family, too.
  explicit Qwen(const ModelConfig& config, const Device& device = Device::cpu(), std::uint64_t seed = 0);
  /// Takes a loaded model. Throws ModelError (InvalidConfig) for one of another family.
  explicit Qwen(const LanguageModel& model);

  /// Throws ValueError for a layer that is not there.
  QwenDecoderLayer layer(std::int64_t index) const;
};

}  // namespace caldera::v1
