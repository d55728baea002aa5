// The order of rows, on every device.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// The positions (rows, count) of the elements that come in places `first` to first + count of every row of x
/// (rows, n) in order; i32, no gradient. NaN is the largest, +0 and -0 are equal, and of equal elements the
/// one that stands first comes first, in descending order too. 0 <= first, first + count <= n <= 2^28; n and
/// rows are not 0. A step of its own on the CPU, elsewhere a network of element-wise steps.
LazyTensor order_of_rows(const LazyTensor& x, bool descending, std::int64_t first, std::int64_t count);

}  // namespace caldera::ops
