#include "ops/reduce/mean.h"

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/sum.h"

namespace caldera {

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
