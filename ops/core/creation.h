// Tensors made of a shape and a value, coordinates, and stop_gradient. Part of ops/ops.h.
#pragma once

#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A tensor of one value everywhere, on default_device() unless another is named. Nothing is stored before it
/// is read. The value is an argument of the compiled plan: another value does not compile again. Integers are
/// exact in every type that holds them, 64-bit ones included; ValueError for one that the type does not hold.
LazyTensor full(const Shape& shape, FillValue value, DType dtype = DType::f32);
LazyTensor full(const Shape& shape, FillValue value, DType dtype, Device device);
LazyTensor zeros(const Shape& shape, DType dtype = DType::f32);
LazyTensor zeros(const Shape& shape, DType dtype, Device device);
LazyTensor ones(const Shape& shape, DType dtype = DType::f32);
LazyTensor ones(const Shape& shape, DType dtype, Device device);
/// Makes zeros of the shape, device and, unless another is named, type of x.
LazyTensor zeros_like(const LazyTensor& x);
LazyTensor zeros_like(const LazyTensor& x, DType dtype);
LazyTensor ones_like(const LazyTensor& x);
LazyTensor ones_like(const LazyTensor& x, DType dtype);
LazyTensor full_like(const LazyTensor& x, FillValue value);
LazyTensor full_like(const LazyTensor& x, FillValue value, DType dtype);

/// Makes zeros for what will be overwritten, which cost nothing before they are read.
LazyTensor empty(const Shape& shape, DType dtype = DType::f32, std::optional<Device> device = {});
/// Makes such zeros of the shape, device and, unless another is named, type of x.
LazyTensor empty_like(const LazyTensor& x, std::optional<DType> dtype = {});

/// The coordinate along `axis` at every point of `shape`.
LazyTensor iota(const Shape& shape, AxisIndex axis, DType dtype, Device device);

/// The value of x; gradients do not pass.
LazyTensor stop_gradient(const LazyTensor& x);

}  // namespace caldera
