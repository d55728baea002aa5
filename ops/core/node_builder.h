// Builds nodes: scalars, checks of extents, types and axes, and rules that many operations share. Above it
// stand operands.h (promotion, conversion, broadcasting) and the operations themselves.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "engine/graph/default_device.h"
#include "engine/graph/jvp.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/graph/vjp.h"
#include "engine/tensor/axes.h"

namespace caldera::ops {

/// Throws ShapeError unless every extent is sensible and the elements can be counted and addressed: kernels
/// and allocators multiply extents without looking. DTypeError for a `dtype` that is none. Extents of 0 count
/// as 1 (as in NumPy), so that strides cannot overflow either. `make` and `make_source` check too.
void check_extents(std::string_view op, const Shape& shape, DType dtype);

/// Throws ShapeError where there are more elements than the 32 bits in which kernels count coordinates and
/// draws.
void check_countable(const Shape& shape, const char* op);

/// A node of `op`. All inputs that are not scalar leaves must be on one device (DeviceError otherwise), which
/// the node takes.
LazyTensor make(const OpDef& op, const Shape& shape, DType dtype, std::span<const LazyTensor> inputs,
                std::span<const std::int64_t> attributes = {});
LazyTensor make(const OpDef& op, const Shape& shape, DType dtype, std::initializer_list<LazyTensor> inputs,
                std::span<const std::int64_t> attributes = {});
/// A node without tensor inputs on `device`.
LazyTensor make_source(const OpDef& op, const Shape& shape, DType dtype, Device device,
                       std::initializer_list<LazyTensor> inputs,
                       std::span<const std::int64_t> attributes = {});

/// A scalar leaf of exactly this dtype (not weak), which holds the value: ask FillValue::fits() first, or
/// take held_scalar() of operands.h.
LazyTensor scalar(FillValue value, DType dtype);
/// Makes a scalar of the bits that FillValue::bits() gives for this dtype.
LazyTensor scalar_of_bits(std::int64_t bits, DType dtype);
/// Whether x is a number: it has a type and a value, but no place.
inline bool is_scalar_leaf(const LazyTensor& x) { return x.node().is_scalar_leaf(); }

/// The number that a scalar leaf is, for who needs it to build a graph: see note_number_read
/// (engine/graph/tracing/tracing.h). To pass it on, take as_operand() of operands.h.
FillValue number_of(const LazyTensor& x);

/// A weak scalar (a C++ number) takes the dtype that the Array API gives it beside `other`; other tensors
/// stay.
DType dtype_beside(const LazyTensor& x, const LazyTensor& other);
/// False of a number that is outside the range of an integer `dtype`; true of all else, and of an argument
/// of a function that is traced: replays see to it.
bool holds(DType dtype, const LazyTensor& x);
/// Returns the device of the first that is a tensor; the default device if all are numbers. Skips what is
/// undefined.
Device device_of(std::initializer_list<LazyTensor> operands);
/// A number as a tensor of rank 0 on `device`: what is computed from numbers alone would land on the default
/// device. Tensors stay as they are.
LazyTensor anchored(const LazyTensor& x, Device device);

/// Throws DTypeError when `dtype` is not in the operation's domain.
void check_domain(std::string_view op, ScalarDomain domain, DType dtype);

/// The axes as a sorted list of indices without repeats; 0 and -1 of a tensor without axes name none, as in
/// PyTorch. Throws ShapeError naming `op`.
Dims resolve_axes(const Axes& axes, const Shape& shape, std::string_view op);

/// Tangent rule of what is linear in its first input, the only one with a tangent: the operation applied to
/// that.
void linear_jvp(JvpContext& c);
/// Gradient rule of what gives its only input on as it is.
void pass_cotangent(VjpContext& c);

}  // namespace caldera::ops
