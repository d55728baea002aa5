// The order of rows, in element-wise steps alone, which every device has and the compiler fuses.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// The positions (rows, count) of the first `count` elements in order of every row of x (rows, n); i32, no
/// gradient. NaN is the largest, +0 and -0 are equal, and of equal elements the one that stands first comes
/// first, in descending order too. 0 <= count <= n <= 2^28; n and rows are not 0.
LazyTensor order_of_rows(const LazyTensor& x, bool descending, std::int64_t count);

}  // namespace caldera::ops
