// ShardedLayers: constant tensors of which each rank keeps a part, gathered a layer at a time as they are
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/distributed/distributed.h"

namespace caldera::distributed {

/// Holds layers of tensors. When a tensor of a layer is read, the layer is gathered, unless it is there; and
/// the one that was read after it the last time begins to be, while this one computes. So a rank has the
/// parts of all layers and the whole of two, in memory of the host.
///
/// Every rank must read the same layers in the same order, however often; of a layer, tensors in any order.
/// Copies are the same layers.
class ShardedLayers {
 public:
  explicit ShardedLayers(const Group& group);

  /// Adds a layer of evaluated floating tensors, of which this rank keeps its part and nothing else. Returns
  /// its number.
  std::size_t add(std::span<const LazyTensor> tensors);

  /// Returns tensor `tensor` of a layer, whole, on the device of `after`: a node that is computed once
  /// `after` is there. It is a constant to differentiation.
  LazyTensor read(std::size_t layer, std::size_t tensor, const LazyTensor& after) const;

  /// Counts the bytes of this rank's parts, and of the largest layer as a whole.
  std::int64_t own_bytes() const;
  std::int64_t largest_layer_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace caldera::distributed
