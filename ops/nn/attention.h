// Attention and its masks. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct AttentionOptions {
  /// Broadcasts to the scores (..., queries, keys). Boolean: may the query look at the key? Otherwise
  /// floating, and added to the scores.
  LazyTensor mask = {};
  /// Query i looks at keys 0 to i (+ offset). Not together with a mask.
  bool is_causal = false;
  /// Query i looks at keys j with i + offset - window < j, and j < i + offset + window (Beltagy et al. 2020;
  /// Mistral's and Gemma's sliding window with is_causal). Not together with a mask.
  std::optional<std::int64_t> window = {};
  /// The key that query 0 stands at, for is_causal and window. An argument of the plan.
  std::int64_t offset = 0;
  /// Scaled products s become softcap * tanh(s / softcap), before they are masked (Gemma 2).
  std::optional<double> softcap = {};
  /// (heads), heads being axis -3 of q: a score of each head that takes part in the softmax and has no value
  /// (gpt-oss). May be undefined.
  LazyTensor sinks = {};
  /// With sinks: key and value 0 are zeros and stand for the sinks, which else are put before the others, in
  /// a copy. Neither offset nor what a mask says of them counts for it.
  bool sink_key = false;
  /// The products are multiplied by this; 1 / sqrt(features) by default.
  std::optional<double> scale = {};
  /// The heads (axis -3) of keys and values may be fewer than those of queries, which share them in groups of
  /// neighbours (Ainslie et al. 2023).
  bool enable_gqa = false;
};

/// softmax(q k^T * scale, masked) v (Vaswani et al. 2017): q (..., queries, features), k (..., keys,
/// features), v (..., keys, width); leading axes broadcast. Runs without holding the scores in memory
/// wherever the compiler takes it (docs/internals/compiler.md). Scores of 16-bit types are float32. A query
/// that a boolean mask lets look at nothing gives the mean of v, where PyTorch gives NaN or 0; one whose
/// every score is -inf gives NaN. Throws ShapeError, DTypeError, or ValueError for a mask with is_causal or
/// a window, and for a window or softcap that is not positive.
LazyTensor scaled_dot_product_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                        const AttentionOptions& options = {});

/// mask[i][j] = j <= i + offset, shape (queries, keys), boolean. The offset is an argument of the plan.
LazyTensor causal_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset = 0);
LazyTensor causal_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset, Device device);

}  // namespace caldera
