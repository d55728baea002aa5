// The order of rows, in element-wise steps alone, which every device has and the compiler fuses.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// Computes order_of_rows() (ops/sort/row_order.h) of the first `count` places.
LazyTensor order_by_network(const LazyTensor& x, bool descending, std::int64_t count);

}  // namespace caldera::ops
