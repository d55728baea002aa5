// Batching rules: each turns an operation on one example into the operation on all of them. There is one rule
// a class of operations, so a new operation of a known class needs none. Internal to vmap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/error.h"
#include "engine/graph/call_rule.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Thrown where vmap would have to map an operation that has no rule for that.
class NoBatchingRule : public GradientError {
 public:
  using GradientError::GradientError;
};

/// Says what the mapped arguments of a function are.
struct Examples {
  std::int64_t size = 0;                 // extent of the mapped axis
  std::vector<LazyTensor> placeholders;  // stand for the mapped arguments inside of the function
};

/// Returns `x` with the mapped axis, repeated along it if it has none. A bare number takes the device of the
/// first mapped argument, and the dtype that promotion with it gives. Throws ShapeError where that is more
/// than kMaxRank axes.
LazyTensor with_mapped_axis(const Batched& x, const Examples& examples);
/// Returns the same of a tensor that is no bare number, and of so many examples.
LazyTensor with_mapped_axis(const Batched& x, std::int64_t examples);

/// Applies the operation of `node`, which works on one example, to all of them. Throws ShapeError when that
/// takes more than kMaxRank axes, and NoBatchingRule for a class of operations that cannot be mapped, naming
/// it.
Batched batch(const Node& node, std::span<const Batched> inputs, const Examples& examples);

}  // namespace caldera
