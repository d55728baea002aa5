// Gathers and scatters along one axis, and what others are built with. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x[..., indices, ...] along `axis`: the shape of `indices` (integers) replaces that axis. An index outside
/// gives NaN (or 0).
LazyTensor take(const LazyTensor& x, const LazyTensor& indices, AxisIndex axis = 0);
/// base with updates added at `indices` along `axis`; repeated indices add up, in order. Indices outside are
/// dropped.
LazyTensor scatter_add(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       AxisIndex axis = 0);

}  // namespace caldera

namespace caldera::ops {

/// Which indices a position along the other axes has: all places the same ones, whose shape replaces the
/// axis; or each its own, in a tensor of x's rank with x's extents but along the axis. `distinct`: each its
/// own, none of which comes twice in one place. A scatter by such needs no order, so a device may do it all
/// at once.
enum class Indices : std::uint8_t { shared, aligned, distinct };

/// Throws DTypeError naming `op` unless the indices are integers.
void check_index_type(std::string_view op, const LazyTensor& indices);
/// Integers of any type, on `device` if they are a number, as i32. Indices outside of [-extent, extent) stay
/// outside, also those beyond int32. Throws DTypeError naming `op` for others, ShapeError for 64 bits along
/// an axis that int32 does not reach to the end of.
LazyTensor narrow_indices(std::string_view op, const LazyTensor& indices, std::int64_t extent, Device device);
/// Checks and converts indices along an axis of x.
inline LazyTensor indices_along(std::string_view op, const LazyTensor& indices, const LazyTensor& x,
                                int axis) {
  return narrow_indices(op, indices, x.shape(axis), x.device());
}

/// Without checks: shapes fit, indices are i32. An index outside gives NaN, or 0 in types without one.
LazyTensor gathered(const LazyTensor& x, const LazyTensor& indices, int axis, Indices kind);
/// Updates come to base in the order of their indices; those with an index outside are dropped.
LazyTensor scattered(Scatter how, const LazyTensor& base, const LazyTensor& indices,
                     const LazyTensor& updates, int axis, Indices kind);

/// By shared indices, with the checks of a public operation.
LazyTensor scattered_by_shared(std::string_view op, Scatter how, const LazyTensor& base,
                               const LazyTensor& indices, const LazyTensor& updates, int axis);

}  // namespace caldera::ops
