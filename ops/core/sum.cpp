#include "ops/core/sum.h"

#include "ops/core/broadcast.h"
#include "ops/core/cast.h"

namespace caldera {

LazyTensor sum(const LazyTensor& x, const Axes& axes, bool keepdims) {
  return ops::sum_along(astype(x, sum_type(x.dtype())), axes, keepdims);
}

LazyTensor sum(const LazyTensor& x, const Axes& axes, DType dtype, bool keepdims) {
  return astype(sum(astype(x, dtype), axes, keepdims), dtype);
}

}  // namespace caldera
