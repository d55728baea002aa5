// TokenStep: one token after the other of one text, through a model that is traced once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/autodiff/function.h"
#include "lm/models/causal_lm.h"
#include "lm/nn/caches/kv_cache.h"

namespace caldera {

/// Feeds single tokens at a low price for the host: the model's graph is built for the first one, and again
/// where the cache has grown; later ones replay it (compiled()), with the position as an argument. Weights,
/// adapters and modes of the model are those of the first token: they may not change while a step lives. A
/// model that cannot be traced, as it looks at values, is called for each token. Not thread-safe.
class TokenStep {
 public:
  /// With `choose` the result is the most likely token; else logits. A reference to the model is kept.
  TokenStep(CausalLM& model, bool choose);

  /// Feeds ids (batch, 1), i32, each as the last token of its text, at the cache's position, which advances.
  /// Returns logits (batch, 1, vocabulary), f32, or tokens (batch, 1), i32, evaluated as by eval() on the CPU
  /// and by eval_async() elsewhere. Throws ValueError where the cache is full; after an error the cache is as
  /// it was.
  LazyTensor operator()(KVCache& cache, const LazyTensor& id);

 private:
  LazyTensor replayed(KVCache& cache, const LazyTensor& id) const;
  LazyTensor computed(KVCache& cache, const LazyTensor& id) const;

  CausalLM& model_;
  bool choose_;
  bool is_traced_ = true;
  std::vector<std::int64_t> windows_;
  const KVCache* cache_ = nullptr;  // of the call in progress
  VectorFunction step_;
};

/// Returns logits in f32 after hidden states (..., hidden), or with `choose` the most likely tokens (..., 1).
LazyTensor logits_or_choices(CausalLM& model, const LazyTensor& hidden, bool choose);
/// Does the same for one hidden state a text (batch, 1, hidden): tokens are (batch, 1), as models take them.
LazyTensor logits_or_choice(CausalLM& model, const LazyTensor& hidden, bool choose);

/// Evaluates all: results on the CPU are there then, elsewhere they are on their way.
void eval_soon(std::span<const LazyTensor> outputs, Device device);

}  // namespace caldera
