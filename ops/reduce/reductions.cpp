#include "ops/reduce/reductions.h"

#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/node_builder.h"

namespace caldera {

LazyTensor sum(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return ops::sum_along(astype(x, sum_type(x.dtype())), axes, keepdims);
}

LazyTensor sum(const LazyTensor& x, const Axes& axes, DType dtype, bool keepdims) {
  return astype(sum(astype(x, dtype), axes, keepdims), dtype);
}

LazyTensor mean(const LazyTensor& x, const Axes& axes, bool keepdims) {
  // 16-bit types in f32: the sum alone might overflow.
  const DType type = is_floating(x.dtype()) ? x.dtype() : DType::f32;
  const LazyTensor real = astype(x, compute_type(type));
  std::int64_t count = 1;
  for (std::int64_t axis : ops::resolve_axes(axes, x.shape(), "mean")) {
    count *= x.shape()[static_cast<int>(axis)];
  }
  return astype(sum(real, axes, keepdims) / static_cast<double>(count), type);
}

}  // namespace caldera
