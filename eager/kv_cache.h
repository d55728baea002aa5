// KVCache of the eager API: keys and values of the positions seen so far.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "eager/tensor.h"

namespace caldera::v1 {

struct KVCacheConfig {
  std::int64_t num_layers = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_seq_len = 2048;
  std::int64_t batch_size = 1;

  /// Throws InferenceError (InvalidConfig) unless all are positive.
  void validate() const;
};

/// Keys and values of each layer, (batch, kv_heads, positions, head_dim), for programs that compute attention
/// themselves; Generator has one of its own. A value; not synchronised.
class KVCache {
 public:
  /// Throws InferenceError (InvalidConfig).
  explicit KVCache(const KVCacheConfig& config);

  /// Puts the keys and values of further positions, (batch, kv_heads, new positions, head_dim), behind those
  /// of the layer, and returns all of them. Throws InferenceError: CacheFull where they do not fit, with the
  /// position; InvalidConfig for an unknown layer; and ShapeError. Nothing has changed then.
  std::pair<Tensor, Tensor> update(std::int64_t layer, const Tensor& keys, const Tensor& values);
  /// The keys and values of a layer; nothing before its first update. Throws InferenceError (InvalidConfig).
  std::optional<std::pair<Tensor, Tensor>> get(std::int64_t layer) const;
  /// Positions that every layer has.
  std::int64_t position() const;
  void clear();
  /// Whether no layer has any position.
  bool is_empty() const;
  std::int64_t max_seq_len() const { return config_.max_seq_len; }
  const KVCacheConfig& config() const { return config_; }

 private:
  using Layer = std::optional<std::pair<Tensor, Tensor>>;
  const Layer& at(std::int64_t layer) const;

  KVCacheConfig config_;
  std::vector<Layer> layers_;
};

}  // namespace caldera::v1
