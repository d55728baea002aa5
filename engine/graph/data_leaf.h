// Leaves that hold a value: what host data become, and detached tensors.
#pragma once

#include <cstddef>
#include <span>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The operation of these leaves: of host data, and of computed values.
extern const OpDef kDataOp;
extern const OpDef kComputedOp;

/// Marks the floating results of compiled functions, from which gradients would go on, if there were a way.
extern const OpDef kCompiledOp;

/// A leaf of this value, which is ready or has an event.
LazyTensor data_leaf(const Shape& shape, DType dtype, Device device, Value value, const OpDef& op = kDataOp);

/// Copies host data of `dtype`, row-major, into a new leaf on `device`. The runtime, which knows devices,
/// says how: throws Error in a program that has none of it linked, which cannot evaluate anything either.
/// Thread-safe.
LazyTensor host_leaf(const void* data, std::size_t bytes, DType dtype, const Shape& shape, Device device);
template <class T>
LazyTensor host_leaf(std::span<const T> data, const Shape& shape, Device device) {
  return host_leaf(data.data(), data.size_bytes(), dtype_of<T>(), shape, device);
}

using HostLeafMaker = LazyTensor (*)(const void* data, std::size_t bytes, DType dtype, const Shape& shape,
                                     Device device);
/// Called once, by the runtime as the program starts. Returns true.
bool set_host_leaf_maker(HostLeafMaker maker);

}  // namespace caldera
