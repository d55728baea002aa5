#include "ops/reduce/statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/root_without_kink.h"
#include "ops/reduce/mean.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

/// x with the axes as one, the last.
LazyTensor gathered(const LazyTensor& x, const Dims& axes) {
  std::vector<int> order;
  Shape shape;
  std::int64_t together = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
    order.push_back(i);
    shape.push_back(x.shape(i));
  }
  for (const std::int64_t axis : axes) {
    order.push_back(static_cast<int>(axis));
    together *= x.shape(static_cast<int>(axis));
  }
  shape.push_back(together);
  return reshape(permute_dims(x, order), shape);
}

Shape kept_shape(const Shape& shape, const Dims& axes) {
  Shape kept = shape;
  for (const std::int64_t axis : axes) kept[static_cast<int>(axis)] = 1;
  return kept;
}

LazyTensor is_true(const LazyTensor& x) { return x.dtype() == DType::boolean ? x : not_equal(x, 0); }

constexpr std::int64_t kMostCounted = std::numeric_limits<std::int32_t>::max();

/// How many elements each sum over the axes is of.
std::int64_t elements_along(const char* op, const LazyTensor& x, const Axes& axes) {
  std::int64_t n = 1;
  for (const std::int64_t axis : ops::resolve_axes(axes, x.shape(), op)) n *= x.shape(static_cast<int>(axis));
  return n;
}

/// Whether more than none of the elements hold.
LazyTensor any_of(const char* op, const LazyTensor& hits, const Axes& axes, bool keepdims) {
  const bool many = elements_along(op, hits, axes) > kMostCounted;
  return greater(sum(astype(hits, many ? DType::i64 : DType::i32), axes, keepdims), 0);
}

}  // namespace

LazyTensor prod(const LazyTensor& x, const Axes& which, bool keepdims) {
  const Dims axes = ops::resolve_axes(which, x.shape(), "prod");
  const DType type = sum_type(x.dtype());
  const LazyTensor given = astype(x, compute_type(type));
  // One axis stays where it is.
  const bool single = axes.rank() == 1;
  LazyTensor y = single ? given : gathered(given, axes);
  const int at = single ? static_cast<int>(axes[0]) : y.rank() - 1;
  std::vector<std::int64_t> none(static_cast<std::size_t>(y.rank()), 0), one = none;
  one[static_cast<std::size_t>(at)] = 1;
  // Halves are multiplied until one is left: no division, so the gradient needs no care for zeros.
  if (y.shape(at) == 0) y = pad(y, none, one, 1);
  while (y.shape(at) > 1) {
    const std::int64_t n = y.shape(at), half = n / 2;
    const LazyTensor product = slice(y, at, 0, half) * slice(y, at, half, 2 * half);
    y = n % 2 == 0 ? product : concatenate({product, slice(y, at, n - 1, n)}, at);
  }
  y = keepdims ? reshape(y, kept_shape(x.shape(), axes)) : squeeze(y, at);
  return astype(y, type);
}

LazyTensor prod(const LazyTensor& x, const Axes& axes, DType dtype, bool keepdims) {
  return astype(prod(astype(x, dtype), axes, keepdims), dtype);
}

LazyTensor var(const LazyTensor& x, const Axes& axes, double correction, bool keepdims) {
  if (!is_floating(x.dtype()))
    throw DTypeError(fmt::format("var: {} has no variance; cast it to a floating type", name(x.dtype())));
  double n = 1;
  for (const std::int64_t axis : ops::resolve_axes(axes, x.shape(), "var"))
    n *= static_cast<double>(x.shape(static_cast<int>(axis)));
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  const LazyTensor squares = square(y - mean(y, axes, true));
  return astype(sum(squares, axes, keepdims) / std::max(0.0, n - correction), x.dtype());
}

LazyTensor std(const LazyTensor& x, const Axes& axes, double correction, bool keepdims) {
  if (!is_floating(x.dtype()))
    throw DTypeError(fmt::format("std: {} has no deviation; cast it to a floating type", name(x.dtype())));
  ops::resolve_axes(axes, x.shape(), "std");
  const LazyTensor variance = var(astype(x, compute_type(x.dtype())), axes, correction, keepdims);
  return astype(ops::root_without_kink(variance, [](const LazyTensor& t) { return sqrt(t); }), x.dtype());
}

LazyTensor any(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return any_of("any", is_true(x), axes, keepdims);
}

LazyTensor all(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return logical_not(any_of("all", logical_not(is_true(x)), axes, keepdims));
}

LazyTensor count_nonzero(const LazyTensor& x, const Axes& axes, bool keepdims) {
  const std::int64_t n = elements_along("count_nonzero", x, axes);
  if (n > kMostCounted)
    throw ShapeError(
        fmt::format("count_nonzero: {} has {} elements along the axes, more than int32 can count",
                    x.shape().to_string(), n));
  return sum(astype(is_true(x), DType::i32), axes, keepdims);
}

}  // namespace caldera
