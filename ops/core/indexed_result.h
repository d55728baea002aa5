// IndexedResult: values of an axis, and where in it they are. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Holds values and their positions along the axis (i32, no gradient), both of one shape.
struct IndexedResult {
  LazyTensor values, indices;
};

}  // namespace caldera
