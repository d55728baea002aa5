// Whether numbers are close to others, or among others. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// |a - b| <= atol + rtol |b|, or a = b (infinities too); with `equal_nan` NaN is close to NaN. Operands
/// broadcast and promote; integers are compared exactly but for the tolerance, which is float32. ValueError
/// unless both tolerances are 0 or more.
LazyTensor isclose(const LazyTensor& a, const LazyTensor& b, double rtol = 1e-5, double atol = 1e-8,
                   bool equal_nan = false);
/// Whether all elements are close, as a tensor without axes: item<bool>() reads it.
LazyTensor allclose(const LazyTensor& a, const LazyTensor& b, double rtol = 1e-5, double atol = 1e-8,
                    bool equal_nan = false);
/// Whether each element equals one of `values` (of any shape), or with `invert` none. NaN equals nothing.
/// Operands promote.
LazyTensor isin(const LazyTensor& x, const LazyTensor& values, bool invert = false);

}  // namespace caldera
