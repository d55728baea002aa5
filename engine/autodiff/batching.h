// Batching rules: what an operation on one example becomes on all of them. One rule a class of operations, so
// that an operation of a known class needs none of its own. Internal to vmap.
#pragma once

#include <cstdint>
#include <span>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A value of a mapped function's graph, rewritten. If it is mapped, axis 0 is the mapped axis, before those
/// of one example.
struct Batched {
  LazyTensor value;
  bool is_mapped = false;
};

/// `x` with the mapped axis of extent `size`: repeated along it if it has none.
LazyTensor with_mapped_axis(const Batched& x, std::int64_t size);

/// The operation of `node`, which is one example's, on all of them. Throws ShapeError when that takes more
/// than kMaxRank axes, and GradientError for a class of operations that cannot be mapped (naming it).
Batched batch(const Node& node, std::span<const Batched> inputs, std::int64_t size);

}  // namespace caldera
