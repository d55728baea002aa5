// Elements repeated as often as a tensor says. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Each element along an axis (of x flattened without one) repeated as often as `counts`, integers, one for
/// each, say; negative ones count as 0. `total` is the extent of the result: of fewer copies the rest is NaN
/// (or 0), of more the last are left out. Without it the sum of the counts is read from the device, which
/// evaluates them. ShapeError for another number of counts.
LazyTensor repeat(const LazyTensor& x, const LazyTensor& counts, std::optional<AxisIndex> axis = {},
                  std::optional<std::int64_t> total = {});

}  // namespace caldera
