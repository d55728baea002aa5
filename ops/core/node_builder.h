// What the files of ops/ build nodes with: promotion, broadcasting and the checks that every operation
// shares.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/jvp.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/graph/vjp.h"
#include "ops/ops.h"

namespace caldera::ops {

/// Throws ShapeError unless every extent is sensible and the elements can be counted and addressed: kernels
/// and allocators multiply extents without looking. Extents of 0 count as 1 (as in NumPy), so that strides
/// cannot overflow either. `make` and `make_source` check too.
void check_extents(std::string_view op, const Shape& shape, DType dtype);

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

/// A scalar leaf of exactly this dtype (not weak).
LazyTensor scalar(FillValue value, DType dtype);

/// A weak scalar (a C++ number) takes the dtype that the Array API gives it beside `other`; other tensors
/// stay.
DType dtype_beside(const LazyTensor& x, const LazyTensor& other);
/// x in `dtype`; a scalar leaf is remade, anything else is cast.
LazyTensor as_operand(const LazyTensor& x, DType dtype);
/// False of a number that lies outside the range of an integer `dtype`; true of all else.
bool holds(DType dtype, const LazyTensor& x);
/// as_operand() of a number that counts as it is: throws ValueError naming `op` unless `dtype` holds it.
LazyTensor as_held_operand(std::string_view op, const LazyTensor& x, DType dtype);
/// Where the first of them lies that is a tensor; the default device if all are numbers. What is undefined is
/// passed by.
Device device_of(std::initializer_list<LazyTensor> operands);
/// A number as a tensor of rank 0 on `device`: what is computed from numbers alone would land on the default
/// device. Tensors stay as they are.
LazyTensor anchored(const LazyTensor& x, Device device);
/// Operands with the numbers among them as tensors of rank 0, of the type that they take beside the first
/// tensor and where it lies. Numbers alone stay as they are.
std::vector<LazyTensor> as_tensors(std::string_view op, std::span<const LazyTensor> operands);
/// x broadcast to `shape`, except that scalar leaves stay as they are: element-wise operations take them
/// directly.
LazyTensor broadcast_operand(const LazyTensor& x, const Shape& shape);

/// Throws DTypeError when `dtype` is not in the operation's domain.
void check_domain(std::string_view op, ScalarDomain domain, DType dtype);

/// Element-wise node: promotion, domain check, broadcasting.
LazyTensor elementwise(const OpDef& op, const LazyTensor& x);
LazyTensor elementwise(const OpDef& op, const LazyTensor& a, const LazyTensor& b);

/// pad() with zeros, which the compiler knows to be zeros: sums of such with disjoint contents are
/// concatenations. For gradients of slices.
LazyTensor pad_with_zeros(const LazyTensor& x, const std::vector<std::int64_t>& low,
                          const std::vector<std::int64_t>& high, const std::vector<std::int64_t>& interior);

/// root(total), a function like sqrt with an infinite slope at 0, where its value is 0 here and its gradient,
/// too.
template <class Root>
LazyTensor root_without_kink(const LazyTensor& total, const Root& root) {
  const LazyTensor zero = equal(total, 0.0);
  return where(zero, zeros_like(total), root(where(zero, ones_like(total), total)));
}

/// Tangent rule of what is linear in all its floating inputs together: the operation applied to the tangents.
void linear_jvp(JvpContext& c);
/// Gradient rule of what gives its only input on as it is.
void pass_cotangent(VjpContext& c);

/// f(x, axis) with the axis counted from 0. A tensor without axes is taken for one of one axis, which 0 and
/// -1 name, and the result has none either, as in PyTorch. Throws ShapeError naming `op`.
template <class F>
LazyTensor along_axis(std::string_view op, const LazyTensor& x, int axis, const F& f) {
  const bool single = x.rank() == 0 && (axis == 0 || axis == -1);
  if (single) return reshape(f(reshape(x, Shape{1}), 0), Shape{});
  return f(x, x.shape().normalize_axis(axis, std::string(op).c_str()));
}

/// The axes as a sorted list of indices without repeats. Throws ShapeError naming `op`.
Dims resolve_axes(const Axes& axes, const Shape& shape, std::string_view op);

}  // namespace caldera::ops
