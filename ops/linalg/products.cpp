#include "ops/linalg/products.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/root_without_kink.h"
#include "ops/elementwise/sign.h"
#include "ops/linalg/matmul.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/diagonals.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

void check_matrix(const char* op, const LazyTensor& x) {
  if (x.rank() < 2)
    throw ShapeError(
        fmt::format("{}: {} has no matrices; it wants two axes or more", op, x.shape().to_string()));
}

std::vector<int> axes_of(const Dims& along) { return {along.begin(), along.end()}; }

/// (sum of size^ord)^(1/ord) of sizes that are not negative, with the axes kept. They are divided by the one
/// that counts for most, so that no power of all of them overflows or vanishes.
LazyTensor power_norm(const LazyTensor& size, const Axes& axes, double ord) {
  const LazyTensor extreme = stop_gradient(ord > 0 ? amax(size, axes, true) : amin(size, axes, true));
  const LazyTensor scales = logical_and(isfinite(extreme), extreme > 0);
  const LazyTensor scale = where(scales, extreme, ones_like(extreme));
  // The slope of size^ord at 0 may be infinite, and that of |y| is 0: their product is taken for 0.
  const LazyTensor zero = equal(size, 0.0);
  const LazyTensor of_zero = full_like(size, ord > 0 ? 0.0 : std::numeric_limits<double>::infinity());
  const LazyTensor powers = where(zero, of_zero, pow(where(zero, ones_like(size), size / scale), ord));
  const LazyTensor total = sum(powers, axes, true);
  const LazyTensor norm =
      ops::root_without_kink(total, [&](const LazyTensor& t) { return pow(t, 1 / ord); }) * scale;
  // All of them are infinite where powers of a negative order are 0.
  return ord > 0 ? norm
                 : where(equal(total, 0.0), full_like(norm, std::numeric_limits<double>::infinity()), norm);
}

}  // namespace

LazyTensor tensordot(const LazyTensor& x, const LazyTensor& y,
                     const std::pair<std::vector<int>, std::vector<int>>& axes) {
  const std::vector<LazyTensor> both = ops::as_tensors("tensordot", std::array{x, y});
  const LazyTensor &a = both[0], &b = both[1];
  ops::check_domain("tensordot", ScalarDomain::numeric, promote(a.dtype(), b.dtype()));
  const auto refuse = [&](const std::string& why) {
    throw ShapeError(
        fmt::format("tensordot: {} and {}: {}", a.shape().to_string(), b.shape().to_string(), why));
  };
  if (axes.first.size() != axes.second.size())
    refuse(fmt::format("{} axes against {}", axes.first.size(), axes.second.size()));
  std::vector<int> left, right, order_a, order_b;
  std::int64_t k = 1;
  for (std::size_t i = 0; i < axes.first.size(); ++i) {
    left.push_back(a.shape().normalize_axis(axes.first[i], "tensordot"));
    right.push_back(b.shape().normalize_axis(axes.second[i], "tensordot"));
    if (std::count(left.begin(), left.end(), left.back()) > 1 ||
        std::count(right.begin(), right.end(), right.back()) > 1)
      refuse("an axis is named twice");
    if (a.shape(left.back()) != b.shape(right.back()))
      refuse(fmt::format("axis {} and axis {} have different extents", left.back(), right.back()));
    k *= a.shape(left.back());
  }
  Shape shape;
  for (int i = 0; i < a.rank(); ++i) {
    if (std::ranges::find(left, i) != left.end()) continue;
    order_a.push_back(i);
    shape.push_back(a.shape(i));
  }
  order_b = right;
  std::int64_t m = 1, n = 1;
  for (int i = 0; i < shape.rank(); ++i) m *= shape[i];
  for (int i = 0; i < b.rank(); ++i) {
    if (std::ranges::find(right, i) != right.end()) continue;
    order_b.push_back(i);
    shape.push_back(b.shape(i));
    n *= b.shape(i);
  }
  order_a.insert(order_a.end(), left.begin(), left.end());
  return reshape(
      matmul(reshape(permute_dims(a, order_a), Shape{m, k}), reshape(permute_dims(b, order_b), Shape{k, n})),
      shape);
}

LazyTensor tensordot(const LazyTensor& a, const LazyTensor& b, int axes) {
  if (axes < 0 || axes > std::min(a.rank(), b.rank()))
    throw ShapeError(fmt::format("tensordot: {} and {} do not both have {} axes", a.shape().to_string(),
                                 b.shape().to_string(), axes));
  std::pair<std::vector<int>, std::vector<int>> pairs;
  for (int i = 0; i < axes; ++i) {
    pairs.first.push_back(a.rank() - axes + i);
    pairs.second.push_back(i);
  }
  return tensordot(a, b, pairs);
}

LazyTensor vecdot(const LazyTensor& a, const LazyTensor& b, AxisIndex axis) {
  const DType type = promote(a.dtype(), b.dtype());
  ops::check_domain("vecdot", ScalarDomain::numeric, type);
  const auto refuse = [&](const char* why) {
    throw ShapeError(fmt::format("vecdot: {} and {} along axis {}: {}", a.shape().to_string(),
                                 b.shape().to_string(), axis, why));
  };
  const int least = std::min(a.rank(), b.rank());
  if (axis >= 0 && a.rank() != b.rank()) refuse("of different ranks axes are counted from the end, -1 ...");
  if (axis >= least || axis < -least) refuse("they do not both have it");
  if (a.shape(axis) != b.shape(axis)) refuse("its extents differ");
  broadcast_shapes(a.shape(), b.shape(), "vecdot");
  return astype(sum(a * b, axis), type);
}

LazyTensor outer(const LazyTensor& a, const LazyTensor& b) {
  if (a.rank() != 1 || b.rank() != 1)
    throw ShapeError(
        fmt::format("outer: {} and {} are not two vectors", a.shape().to_string(), b.shape().to_string()));
  ops::check_domain("outer", ScalarDomain::numeric, a.dtype());
  ops::check_domain("outer", ScalarDomain::numeric, b.dtype());
  return expand_dims(a, 1) * expand_dims(b, 0);
}

LazyTensor cross(const LazyTensor& a, const LazyTensor& b, AxisIndex axis) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), "cross");
  const int at = shape.normalize_axis(axis, "cross");
  const int from_end = at - shape.rank();
  if (-from_end > std::min(a.rank(), b.rank()) || a.shape(from_end) != 3 || b.shape(from_end) != 3)
    throw ShapeError(fmt::format("cross: {} and {} do not have 3 elements along axis {}",
                                 a.shape().to_string(), b.shape().to_string(), axis));
  ops::check_domain("cross", ScalarDomain::numeric, a.dtype());
  ops::check_domain("cross", ScalarDomain::numeric, b.dtype());
  const auto part = [&](const LazyTensor& x, int i) { return slice(x, from_end + x.rank(), i, i + 1); };
  std::vector<LazyTensor> parts;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    parts.push_back(part(a, j) * part(b, k) - part(a, k) * part(b, j));
  }
  return concatenate(parts, at);
}

LazyTensor trace(const LazyTensor& x, std::int64_t offset) {
  check_matrix("trace", x);
  return sum(diagonal(x, offset), -1);
}

LazyTensor trace(const LazyTensor& x, std::int64_t offset, DType dtype) {
  check_matrix("trace", x);
  return sum(diagonal(x, offset), -1, dtype);
}

LazyTensor vector_norm(const LazyTensor& x, const Axes& axes, double ord, bool keepdims) {
  ops::check_domain("vector_norm", ScalarDomain::floating, x.dtype());
  const Dims along = ops::resolve_axes(axes, x.shape(), "vector_norm");
  if (std::isnan(ord)) throw ValueError("vector_norm: ord is nan");
  const bool none = std::any_of(along.begin(), along.end(),
                                [&](std::int64_t axis) { return x.shape(static_cast<int>(axis)) == 0; });
  if (std::isinf(ord) && none)
    throw ShapeError(fmt::format("vector_norm: {} has no element to choose along the axes, and ord is {}",
                                 x.shape().to_string(), ord));
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  LazyTensor norm;
  if (std::isinf(ord)) {
    norm = ord > 0 ? amax(abs(y), axes, keepdims) : amin(abs(y), axes, keepdims);
  } else if (ord == 0) {
    norm = sum(astype(not_equal(y, 0.0), y.dtype()), axes, keepdims);
  } else if (ord == 1) {
    norm = sum(abs(y), axes, keepdims);
  } else if (ord == 2) {
    norm =
        ops::root_without_kink(sum(square(y), axes, keepdims), [](const LazyTensor& t) { return sqrt(t); });
  } else {
    norm = none ? sum(y, axes, keepdims) : power_norm(abs(y), axes, ord);
    if (none && ord < 0) norm = full_like(norm, std::numeric_limits<double>::infinity());
    if (!none && !keepdims) norm = squeeze(norm, axes_of(along));
  }
  return astype(norm, x.dtype());
}

}  // namespace caldera
