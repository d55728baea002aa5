// Tensors joined to one: concatenate, concat, stack. Part of ops/ops.h.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The parts one behind the other along an axis; they have the same extents but along it, and promote. Throws
/// ShapeError for others, or none.
LazyTensor concatenate(const std::vector<LazyTensor>& parts, AxisIndex axis = 0);
/// concatenate() by its name in the Array API; without an axis (std::nullopt) of the tensors flattened.
LazyTensor concat(const std::vector<LazyTensor>& parts, std::optional<AxisIndex> axis = 0);
LazyTensor stack(const std::vector<LazyTensor>& parts, AxisIndex axis = 0);

}  // namespace caldera
