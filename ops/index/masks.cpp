#include "ops/index/masks.h"

#include <fmt/core.h>

#include <limits>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/reduce/cumulative.h"

namespace caldera {
namespace {

constexpr std::int64_t kMostPositions = std::numeric_limits<std::int32_t>::max();

void check_mask(const char* op, const LazyTensor& mask) {
  if (mask.dtype() != DType::boolean)
    throw DTypeError(fmt::format("{}: a mask is of bool, got {}; compare it with 0", op, name(mask.dtype())));
}

/// Where the k-th element that holds is, for k = 0 ... size - 1, and the number of elements where there is
/// none. Those that hold and, behind them, the others exchange places with their numbers: no two meet, so
/// that a device scatters them all at once.
LazyTensor positions(const char* op, const LazyTensor& mask, std::int64_t size) {
  const std::int64_t n = mask.numel();
  if (size < 0 || size > kMostPositions) throw ValueError(fmt::format("{}: a size of {}", op, size));
  if (n >= kMostPositions)
    throw ShapeError(fmt::format("{}: {} has more elements than int32 counts", op, mask.shape().to_string()));
  const Device device = mask.device();
  if (n == 0 || size == 0) return zeros(Shape{size}, DType::i32, device);
  const LazyTensor holds = reshape(mask, Shape{n}), number = iota(Shape{n}, 0, DType::i32, device);
  const LazyTensor counts = cumsum(astype(holds, DType::i32)), all = slice(counts, 0, n - 1, n);
  const LazyTensor place = where(holds, counts - 1, all + number - counts);
  LazyTensor at = ops::scattered(Scatter::set, zeros_like(number), place, number, 0, ops::Indices::distinct);
  at = size <= n ? slice(at, 0, 0, size) : pad(at, {0}, {size - n}, 0);
  const auto behind = static_cast<int>(n);
  return where(iota(Shape{size}, 0, DType::i32, device) < all, at, behind);
}

}  // namespace

LazyTensor masked_fill(const LazyTensor& x, const LazyTensor& mask, const LazyTensor& value) {
  check_mask("masked_fill", mask);
  broadcast_shapes(x.shape(), mask.shape(), "masked_fill");
  if (value.rank() != 0)
    throw ShapeError(fmt::format("masked_fill: the value is one number, got {}; use where for more",
                                 value.shape().to_string()));
  return where(mask, ops::as_held_operand("masked_fill", value, x.dtype()), x);
}

LazyTensor masked_select(const LazyTensor& x, const LazyTensor& mask, std::int64_t size, FillValue fill) {
  check_mask("masked_select", mask);
  const Shape shape = broadcast_shapes(x.shape(), mask.shape(), "masked_select");
  const std::int64_t n = shape.numel();
  const LazyTensor at = positions("masked_select", broadcast_to(mask, shape), size);
  LazyTensor rest = full(Shape{size}, fill, x.dtype(), mask.device());
  if (n == 0) return rest;
  const LazyTensor all = broadcast_to(ops::anchored(x, mask.device()), shape);
  return where(at < n, take(reshape(all, Shape{n}), at), rest);
}

LazyTensor masked_scatter(const LazyTensor& x, const LazyTensor& mask, const LazyTensor& source) {
  check_mask("masked_scatter", mask);
  if (x.dtype() != source.dtype())
    throw DTypeError(
        fmt::format("masked_scatter: a source of {} for {}", name(source.dtype()), name(x.dtype())));
  if (broadcast_shapes(x.shape(), mask.shape(), "masked_scatter") != x.shape())
    throw ShapeError(fmt::format("masked_scatter: mask {} does not broadcast to {}", mask.shape().to_string(),
                                 x.shape().to_string()));
  const std::int64_t n = x.numel();
  if (n >= kMostPositions)
    throw ShapeError(
        fmt::format("masked_scatter: {} has more elements than int32 counts", x.shape().to_string()));
  if (n == 0) return x;
  const LazyTensor holds = broadcast_to(mask, x.shape());
  const LazyTensor rank = cumsum(astype(reshape(holds, Shape{n}), DType::i32)) - 1;
  // What is not chosen must be finite for the sake of the gradient, and inside.
  const LazyTensor chosen = reshape(holds, Shape{n}),
                   read = take(reshape(ops::anchored(source, x.device()), Shape{source.numel()}),
                               where(chosen, rank, 0));
  return where(holds, reshape(read, x.shape()), x);
}

std::vector<LazyTensor> nonzero(const LazyTensor& x, std::int64_t size, std::int64_t fill) {
  if (x.rank() == 0) throw ShapeError("nonzero: () has no axes to give coordinates for");
  const std::int64_t n = x.numel();
  const LazyTensor holds = x.dtype() == DType::boolean ? x : not_equal(x, 0);
  const LazyTensor at = positions("nonzero", holds, size);
  const LazyTensor rest = full(Shape{size}, fill, DType::i32, x.device());
  std::vector<LazyTensor> out;
  std::int64_t behind = n;
  for (const std::int64_t extent : x.shape()) {
    if (n == 0) {
      out.push_back(rest);
      continue;
    }
    behind /= extent;
    out.push_back(where(at < n, remainder(floor_divide(at, behind), extent), rest));
  }
  return out;
}

}  // namespace caldera
