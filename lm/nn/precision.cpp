#include "lm/nn/precision.h"

#include "ops/core/cast.h"
#include "ops/core/creation.h"

namespace caldera {

LazyTensor in_dtype(const LazyTensor& x, DType dtype) { return x.dtype() == dtype ? x : astype(x, dtype); }

LazyTensor cast_like(const LazyTensor& parameter, const LazyTensor& x) {
  if (!parameter.defined() || !is_16bit_float(x.dtype())) return parameter;
  return in_dtype(parameter, x.dtype());
}

void detail::convert(LazyTensor& tensor, DType dtype) {
  tensor = stop_gradient(astype(tensor, dtype));  // of which the former values are no history
  tensor.eval();
}

}  // namespace caldera
