#include "ops/index/take_put.h"

#include <fmt/core.h>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/index/at.h"
#include "ops/index/scatter.h"

namespace caldera {

LazyTensor take(const LazyTensor& x, const LazyTensor& indices, AxisIndex axis, OutsideIndex outside) {
  const int at = x.shape().normalize_axis(axis, "take");
  ops::check_index_type("take", indices);
  const std::int64_t n = x.shape(at);
  if (n == 0 && indices.numel() > 0)
    throw ShapeError(fmt::format("take: {} has no element along axis {}", x.shape().to_string(), axis));
  if (n == 0) return take(x, indices, axis);
  // In 64 bits: an extent need not be held by narrow integers.
  const LazyTensor wide = astype(ops::anchored(indices, x.device()), DType::i64);
  return take(x, outside == OutsideIndex::wrap ? remainder(wide, n) : clip(wide, 0, n - 1), axis);
}

LazyTensor put(const LazyTensor& x, const LazyTensor& indices, const LazyTensor& values, Scatter how) {
  ops::check_index_type("put", indices);
  const Device device = ops::device_of({x, indices, values});
  const LazyTensor flat = reshape(ops::anchored(x, device), Shape{x.numel()});
  const LazyTensor updates = ops::anchored(ops::as_held_operand("put", values, x.dtype()), device);
  if (broadcast_shapes(updates.shape(), indices.shape(), "put") != indices.shape())
    throw ShapeError(fmt::format("put: values {} do not broadcast to indices {}", values.shape().to_string(),
                                 indices.shape().to_string()));
  return reshape(index_put(flat, {ops::anchored(indices, device)}, updates, how), x.shape());
}

LazyTensor index_fill(const LazyTensor& x, AxisIndex axis, const LazyTensor& indices,
                      const LazyTensor& value) {
  const int at = x.shape().normalize_axis(axis, "index_fill");
  ops::check_index_type("index_fill", indices);
  if (indices.rank() > 1 || value.rank() != 0)
    throw ShapeError(fmt::format("index_fill: indices {} and value {}; want at most one axis, and one number",
                                 indices.shape().to_string(), value.shape().to_string()));
  const std::int64_t n = x.shape(at);
  const LazyTensor which = ops::indices_along("index_fill", indices, x, at);
  const LazyTensor hit = put(zeros(Shape{n}, DType::boolean, x.device()), which,
                             ones(which.shape(), DType::boolean, x.device()));
  Shape along(Dims::filled(x.rank(), 1));
  along[at] = n;
  return where(reshape(hit, along), ops::as_held_operand("index_fill", value, x.dtype()), x);
}

}  // namespace caldera
