// Slices, and padding, which undoes them in gradients. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x[..., start:stop:step, ...] along one axis, with Python's rules for negative and absent bounds.
LazyTensor slice(const LazyTensor& x, int axis, std::optional<std::int64_t> start,
                 std::optional<std::int64_t> stop, std::int64_t step = 1);
/// Low and high margins per axis, and `interior` elements between neighbours (empty = none), filled with
/// `value`.
LazyTensor pad(const LazyTensor& x, const std::vector<std::int64_t>& low,
               const std::vector<std::int64_t>& high, FillValue value = 0,
               const std::vector<std::int64_t>& interior = {});

}  // namespace caldera

namespace caldera::ops {

/// pad() with zeros, which the compiler knows to be zeros: sums of such with disjoint contents are
/// concatenations. For gradients of slices.
LazyTensor pad_with_zeros(const LazyTensor& x, const std::vector<std::int64_t>& low,
                          const std::vector<std::int64_t>& high, const std::vector<std::int64_t>& interior);

/// x[..., start : start + count * step : step, ...] along one axis, without Python's conventions.
LazyTensor window(const LazyTensor& x, int axis, std::int64_t start, std::int64_t count, std::int64_t step);

}  // namespace caldera::ops
