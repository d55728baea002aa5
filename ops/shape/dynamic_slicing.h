// Slices whose places are arguments: a program that only moves them keeps its plan. Part of ops/ops.h.
//
// A start is a number, or an integer tensor of one element that is computed on the device. It is clamped so
// that the window is within x, as in JAX: a start below 0 means 0, one beyond extent - size means that. (No
// start counts from the end.) Slices by numbers copy nothing: what reads one reads the memory of x; those by
// tensors are gathered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The window of x of extents `sizes` that begins at `starts`, one of each for every axis: dynamic_slice(x,
/// {i, 0}, {4, 8}). Throws ShapeError where there are more or fewer, where a size is negative or beyond the
/// extent, or a start has not one element; DTypeError for a start that is no integer.
LazyTensor dynamic_slice(const LazyTensor& x, const std::vector<LazyTensor>& starts,
                         const std::vector<std::int64_t>& sizes);
LazyTensor dynamic_slice(const LazyTensor& x, std::span<const std::int64_t> starts,
                         const std::vector<std::int64_t>& sizes);

/// x with `update`, of x's type and rank, in place of the window that begins at `starts`. Where nobody else
/// holds x when this is evaluated, x's memory becomes that of the result, and only the window is written.
/// Throws ShapeError where the update does not fit into x, or a start has not one element; DTypeError for an
/// update of another type, or a start that is no integer.
LazyTensor dynamic_update_slice(const LazyTensor& x, const LazyTensor& update,
                                const std::vector<LazyTensor>& starts);
LazyTensor dynamic_update_slice(const LazyTensor& x, const LazyTensor& update,
                                std::span<const std::int64_t> starts);

}  // namespace caldera
