// The operations on LazyTensor. All build nodes and return at once; shapes and dtypes are checked at the
// call, which throws ShapeError / DTypeError / DeviceError naming the operation and the operands' shapes.
//
// Binary operations broadcast and promote by the rules of the Python Array API standard 2023.12; numbers
// given as C++ scalars take the tensor's dtype and device. An integer that the dtype does not hold is refused
// (ValueError) but for comparisons and clip, which take it as it is. Axes may be negative. Operands of one
// operation live on one device; `to` moves them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"
#include "ops/core/ranges.h"
#include "ops/core/type_info.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/index/at.h"
#include "ops/index/scatter.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/products.h"
#include "ops/loss/nll.h"
#include "ops/loss/ranking.h"
#include "ops/loss/regression.h"
#include "ops/nn/activations.h"
#include "ops/nn/attention.h"
#include "ops/nn/channel_normalization.h"
#include "ops/nn/convolution.h"
#include "ops/nn/interpolation.h"
#include "ops/random/distributions.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/padding.h"
#include "ops/shape/repetition.h"
#include "ops/sort/sorting.h"

namespace caldera {

// ---- element-wise
// ---------------------------------------------------------------------------------------------------
LazyTensor add(const LazyTensor& a, const LazyTensor& b);
LazyTensor subtract(const LazyTensor& a, const LazyTensor& b);
LazyTensor multiply(const LazyTensor& a, const LazyTensor& b);
LazyTensor divide(const LazyTensor& a, const LazyTensor& b);  // true division: integers become f32
LazyTensor floor_divide(const LazyTensor& a, const LazyTensor& b);
LazyTensor remainder(const LazyTensor& a, const LazyTensor& b);
LazyTensor pow(const LazyTensor& a, const LazyTensor& b);
LazyTensor maximum(const LazyTensor& a,
                   const LazyTensor& b);  // NaN if either is; gradient of ties split equally
LazyTensor minimum(const LazyTensor& a, const LazyTensor& b);
LazyTensor atan2(const LazyTensor& y, const LazyTensor& x);
LazyTensor logical_and(const LazyTensor& a, const LazyTensor& b);  // boolean only, as are or, xor, not
LazyTensor logical_or(const LazyTensor& a, const LazyTensor& b);
LazyTensor logical_xor(const LazyTensor& a, const LazyTensor& b);
LazyTensor logical_not(const LazyTensor& x);
LazyTensor equal(const LazyTensor& a, const LazyTensor& b);
LazyTensor not_equal(const LazyTensor& a, const LazyTensor& b);
LazyTensor less(const LazyTensor& a, const LazyTensor& b);
LazyTensor less_equal(const LazyTensor& a, const LazyTensor& b);
LazyTensor greater(const LazyTensor& a, const LazyTensor& b);
LazyTensor greater_equal(const LazyTensor& a, const LazyTensor& b);
/// condition ? a : b, element by element.
LazyTensor where(const LazyTensor& condition, const LazyTensor& a, const LazyTensor& b);

LazyTensor negative(const LazyTensor& x);
LazyTensor abs(const LazyTensor& x);
LazyTensor sign(const LazyTensor& x);
LazyTensor floor(const LazyTensor& x);
LazyTensor ceil(const LazyTensor& x);
LazyTensor round(const LazyTensor& x);  // half to even
LazyTensor trunc(const LazyTensor& x);
LazyTensor exp(const LazyTensor& x);
LazyTensor expm1(const LazyTensor& x);
LazyTensor log(const LazyTensor& x);
LazyTensor log1p(const LazyTensor& x);
LazyTensor sqrt(const LazyTensor& x);
LazyTensor rsqrt(const LazyTensor& x);
LazyTensor sin(const LazyTensor& x);
LazyTensor cos(const LazyTensor& x);
LazyTensor tan(const LazyTensor& x);
LazyTensor tanh(const LazyTensor& x);
LazyTensor sigmoid(const LazyTensor& x);
LazyTensor erf(const LazyTensor& x);
LazyTensor reciprocal(const LazyTensor& x);
LazyTensor square(const LazyTensor& x);
LazyTensor isnan(const LazyTensor& x);
LazyTensor astype(const LazyTensor& x, DType dtype);

inline LazyTensor operator+(const LazyTensor& a, const LazyTensor& b) { return add(a, b); }
inline LazyTensor operator-(const LazyTensor& a, const LazyTensor& b) { return subtract(a, b); }
inline LazyTensor operator*(const LazyTensor& a, const LazyTensor& b) { return multiply(a, b); }
inline LazyTensor operator/(const LazyTensor& a, const LazyTensor& b) { return divide(a, b); }
inline LazyTensor operator-(const LazyTensor& x) { return negative(x); }
inline LazyTensor operator==(const LazyTensor& a, const LazyTensor& b) { return equal(a, b); }
inline LazyTensor operator!=(const LazyTensor& a, const LazyTensor& b) { return not_equal(a, b); }
inline LazyTensor operator<(const LazyTensor& a, const LazyTensor& b) { return less(a, b); }
inline LazyTensor operator<=(const LazyTensor& a, const LazyTensor& b) { return less_equal(a, b); }
inline LazyTensor operator>(const LazyTensor& a, const LazyTensor& b) { return greater(a, b); }
inline LazyTensor operator>=(const LazyTensor& a, const LazyTensor& b) { return greater_equal(a, b); }

// ---- reductions
// -----------------------------------------------------------------------------------------------------
/// Sums of boolean and of integers narrower than i32 are i32; other dtypes keep theirs. With a dtype the
/// elements are cast to it first, and the sum is of it.
LazyTensor sum(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor sum(const LazyTensor& x, const Axes& axes, DType dtype, bool keepdims = false);
LazyTensor mean(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
/// NaN if any element is. Of ties along one axis the first has the gradient; among those over several or all
/// axes it is split equally. (So do max(dim) and max() of PyTorch.)
LazyTensor max(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor min(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
/// The same values; the gradient is always split equally among ties.
LazyTensor amax(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);
LazyTensor amin(const LazyTensor& x, const Axes& axes = {}, bool keepdims = false);

// ---- contraction
// ----------------------------------------------------------------------------------------------------
/// Matrix product with the Array API's rules for 1-D operands and broadcast batches. Transposed, sliced and
/// broadcast operands are read in place.
LazyTensor matmul(const LazyTensor& a, const LazyTensor& b);

// ---- indexing
// -------------------------------------------------------------------------------------------------------
/// x[..., indices, ...] along `axis`: the shape of `indices` (integers) replaces that axis. An index outside
/// gives NaN (or 0).
LazyTensor take(const LazyTensor& x, const LazyTensor& indices, int axis = 0);
/// base with updates added at `indices` along `axis`; repeated indices add up, in order. Indices outside are
/// dropped.
LazyTensor scatter_add(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       int axis = 0);

// ---- movement
// -------------------------------------------------------------------------------------------------------
/// One extent may be -1: it is inferred.
LazyTensor reshape(const LazyTensor& x, const Shape& shape);
/// Reorders the axes: out.shape[i] = x.shape[axes[i]].
LazyTensor permute_dims(const LazyTensor& x, const std::vector<int>& axes);
/// Swaps the last two axes.
LazyTensor transpose(const LazyTensor& x);
LazyTensor swapaxes(const LazyTensor& x, int a, int b);
/// Without these axes, whose extents have to be 1; by default without all that are.
LazyTensor squeeze(const LazyTensor& x, const Axes& axes = {});
LazyTensor expand_dims(const LazyTensor& x, int axis);
LazyTensor broadcast_to(const LazyTensor& x, const Shape& shape);
/// x[..., start:stop:step, ...] along one axis, with Python's rules for negative and absent bounds.
LazyTensor slice(const LazyTensor& x, int axis, std::optional<std::int64_t> start,
                 std::optional<std::int64_t> stop, std::int64_t step = 1);
/// Low and high margins per axis, and `interior` elements between neighbours (empty = none), filled with
/// `value`.
LazyTensor pad(const LazyTensor& x, const std::vector<std::int64_t>& low,
               const std::vector<std::int64_t>& high, FillValue value = 0,
               const std::vector<std::int64_t>& interior = {});
LazyTensor concatenate(const std::vector<LazyTensor>& parts, int axis = 0);
/// concatenate() by its name in the Array API; without an axis (std::nullopt) of the tensors flattened.
LazyTensor concat(const std::vector<LazyTensor>& parts, std::optional<int> axis = 0);
LazyTensor stack(const std::vector<LazyTensor>& parts, int axis = 0);

// ---- creation
// -------------------------------------------------------------------------------------------------------
/// 0, 1, …, n - 1; from other numbers on and in other steps: ops/core/ranges.h.
LazyTensor arange(std::int64_t n, DType dtype = DType::i32);
LazyTensor arange(std::int64_t n, DType dtype, Device device);
/// The coordinate along `axis` at every point of `shape`.
LazyTensor iota(const Shape& shape, int axis, DType dtype, Device device);
/// Of the shape, device and, unless another is named, type of x.
LazyTensor zeros_like(const LazyTensor& x);
LazyTensor zeros_like(const LazyTensor& x, DType dtype);
LazyTensor ones_like(const LazyTensor& x);
LazyTensor ones_like(const LazyTensor& x, DType dtype);
LazyTensor full_like(const LazyTensor& x, FillValue value);
LazyTensor full_like(const LazyTensor& x, FillValue value, DType dtype);

// ---- random (Philox4x32-10, counter-based: the same stream on every device, a pure function of seed and
// shape) -----------
/// Uniform on [0, 1). `seed` is an argument of the plan: a new seed does not compile again.
LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32);
LazyTensor random_uniform(const Shape& shape, std::uint64_t seed, DType dtype, Device device);
/// Mean 0, deviation 1.
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype = DType::f32);
LazyTensor random_normal(const Shape& shape, std::uint64_t seed, DType dtype, Device device);

// ---- composites
// -----------------------------------------------------------------------------------------------------
/// Of tensors without axes, axis 0 or -1 is the element itself here, in logsumexp, and wherever the elements
/// along one axis are put in order or added up (cumulative.h, sorting.h, argmax).
LazyTensor softmax(const LazyTensor& x, int axis = -1);
LazyTensor log_softmax(const LazyTensor& x, int axis = -1);
/// log(sum(exp(x))) without overflow; -infinity of no elements.
LazyTensor logsumexp(const LazyTensor& x, int axis = -1, bool keepdims = false);
/// x / sqrt(mean(x^2) + eps) over the last axis (Zhang and Sennrich 2019), times weight if given.
LazyTensor rms_norm(const LazyTensor& x, double eps, const LazyTensor& weight = {});
/// (x - mean) / sqrt(variance + eps) over the last `axes` axes together (Ba, Kiros and Hinton 2016), times
/// weight, plus bias, which have the extents of those axes.
LazyTensor layer_norm(const LazyTensor& x, double eps, const LazyTensor& weight = {},
                      const LazyTensor& bias = {}, int axes = 1);
/// 1 where the coordinate along a new last axis of `classes` elements is the index, else 0; all 0 for an
/// index outside. ValueError for a negative number of classes.
LazyTensor one_hot(const LazyTensor& indices, std::int64_t classes, DType dtype = DType::f32);
/// scale * ((x @ a) @ b): x (..., in), a (in, rank), b (rank, out).
LazyTensor lora_delta(const LazyTensor& x, const LazyTensor& a, const LazyTensor& b, double scale);

/// The value of x on `device`, where operations with tensors of that device can take it. Gradients come back
/// to x's device. Numbers fit every device and stay as they are.
LazyTensor to(const LazyTensor& x, Device device);

/// The value of x; gradients do not pass.
LazyTensor stop_gradient(const LazyTensor& x);

}  // namespace caldera
