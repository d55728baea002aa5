// Choices between elements: where, maximum, minimum. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// condition ? a : b, element by element.
LazyTensor where(const LazyTensor& condition, const LazyTensor& a, const LazyTensor& b);
/// The larger (smaller) of two, NaN if either is. The gradient of ties is split equally.
LazyTensor maximum(const LazyTensor& a, const LazyTensor& b);
LazyTensor minimum(const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
