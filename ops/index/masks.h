// Elements that a mask chooses. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x with `value`, a number or a tensor of rank 0, wherever mask holds; mask and x broadcast.
LazyTensor masked_fill(const LazyTensor& x, const LazyTensor& mask, const LazyTensor& value);
/// The first `size` elements for which mask holds, in row-major order, and `fill` where there are fewer:
/// shapes do not depend on values here. mask and x broadcast.
LazyTensor masked_select(const LazyTensor& x, const LazyTensor& mask, std::int64_t size, FillValue fill = 0);
/// x with the elements of `source`, one after the other, wherever mask holds, in row-major order; mask
/// broadcasts to x. Where `source` has too few, NaN, or 0 in types without one (PyTorch refuses that).
/// DTypeError unless both have one type.
LazyTensor masked_scatter(const LazyTensor& x, const LazyTensor& mask, const LazyTensor& source);
/// The coordinates of the first `size` elements that are not 0, in row-major order: for each axis of x an i32
/// vector. `fill` where there are fewer.
std::vector<LazyTensor> nonzero(const LazyTensor& x, std::int64_t size, std::int64_t fill = 0);

}  // namespace caldera
