// What networks are made of besides products: attention, dropout, embeddings. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct AttentionOptions {
  /// Broadcasts to the scores (..., queries, keys). Boolean: may the query look at the key? Otherwise
  /// floating, and added to the scores.
  LazyTensor mask = {};
  /// Query i looks at keys 0 to i. Not together with a mask.
  bool is_causal = false;
  /// What the products are multiplied by; 1 / sqrt(features) by default.
  std::optional<double> scale = {};
  /// The heads (axis -3) of keys and values may be fewer than those of queries, which share them in groups of
  /// neighbours (Ainslie et al. 2023).
  bool enable_gqa = false;
};

/// softmax(q k^T * scale, masked) v (Vaswani et al. 2017): q (..., queries, features), k (..., keys,
/// features), v
/// (..., keys, width); leading axes broadcast. Runs without holding the scores in memory wherever the
/// compiler takes it (docs/compiler.md). Scores of 16-bit types are float32. A query that a boolean mask lets
/// look at nothing gives the mean of v, where PyTorch gives NaN or 0; one whose every score is -inf gives
/// NaN. Throws ShapeError, DTypeError, or ValueError for a mask beside is_causal.
LazyTensor scaled_dot_product_attention(const LazyTensor& q, const LazyTensor& k, const LazyTensor& v,
                                        const AttentionOptions& options = {});

/// mask[i][j] = j <= i + offset, shape (queries, keys), boolean. The offset is an argument of the plan.
LazyTensor causal_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset = 0);
LazyTensor causal_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset, Device device);

/// Zero with probability p, else x / (1 - p) (Srivastava et al. 2014). What is kept is a pure function of
/// `seed` and the shape, the same on every device; the seed is an argument of the plan. ValueError unless 0
/// <= p <= 1.
LazyTensor dropout(const LazyTensor& x, double p, std::uint64_t seed);
/// The same for whole channels (axis 1 of (batch, channels, ...)) at once (Tompson et al. 2015).
LazyTensor channel_dropout(const LazyTensor& x, double p, std::uint64_t seed);

/// Rows of `weight` (count, features), which replace the axis-less `indices` (int32): (..., features). An
/// index outside gives NaN. The gradient of row `padding_idx` (negative: from the end) is 0, if one is named;
/// ValueError if it is outside.
LazyTensor embedding(const LazyTensor& weight, const LazyTensor& indices,
                     std::optional<std::int64_t> padding_idx = {});

}  // namespace caldera
