// Batching rules: what an operation on one example becomes on all of them. One rule a class of operations, so
// that an operation of a known class needs none of its own. Internal to vmap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A value of a mapped function's graph, rewritten. If it is mapped, axis 0 is the mapped axis, before those
/// of one example.
struct Batched {
  LazyTensor value;
  bool is_mapped = false;
};

/// What the mapped arguments of a function are.
struct Examples {
  std::int64_t size = 0;                 // extent of the mapped axis
  std::vector<LazyTensor> placeholders;  // stand for the mapped arguments inside of the function
};

/// `x` with the mapped axis: repeated along it if it has none. A bare number gets the device of the mapped
/// arguments, and the dtype that it has beside the first of them.
LazyTensor with_mapped_axis(const Batched& x, const Examples& examples);

/// The operation of `node`, which is one example's, on all of them. Throws ShapeError when that takes more
/// than kMaxRank axes, and GradientError for a class of operations that cannot be mapped (naming it).
Batched batch(const Node& node, std::span<const Batched> inputs, const Examples& examples);

}  // namespace caldera
