// Vectors of indices: rows of a table, and one-hot. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Rows of `weight` (count, features), which replace the axis-less `indices` (int32): (..., features). An
/// index outside gives NaN. The gradient of row `padding_idx` (negative: from the end) is 0, if one is named;
/// ValueError if it is outside.
LazyTensor embedding(const LazyTensor& weight, const LazyTensor& indices,
                     std::optional<std::int64_t> padding_idx = {});
/// 1 where the coordinate along a new last axis of `classes` elements is the index, else 0; all 0 for an
/// index outside. ValueError for a negative number of classes.
LazyTensor one_hot(const LazyTensor& indices, std::int64_t classes, DType dtype = DType::f32);

}  // namespace caldera
