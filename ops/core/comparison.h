// Comparisons and logic, element by element. Results are bool and have no gradient. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor equal(const LazyTensor& a, const LazyTensor& b);
LazyTensor not_equal(const LazyTensor& a, const LazyTensor& b);
LazyTensor less(const LazyTensor& a, const LazyTensor& b);
LazyTensor less_equal(const LazyTensor& a, const LazyTensor& b);
LazyTensor greater(const LazyTensor& a, const LazyTensor& b);
LazyTensor greater_equal(const LazyTensor& a, const LazyTensor& b);
LazyTensor isnan(const LazyTensor& x);

LazyTensor logical_and(const LazyTensor& a, const LazyTensor& b);  // boolean only, as are or, xor, not
LazyTensor logical_or(const LazyTensor& a, const LazyTensor& b);
LazyTensor logical_xor(const LazyTensor& a, const LazyTensor& b);
LazyTensor logical_not(const LazyTensor& x);

}  // namespace caldera
