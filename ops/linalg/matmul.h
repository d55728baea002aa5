// The matrix product. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Matrix product with the Array API's rules for 1-D operands and broadcast batches. Transposed, sliced and
/// broadcast operands are read in place.
LazyTensor matmul(const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
