// The identity matrix for linear algebra.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera::matrices {

/// The n x n identity of the type and device of x.
LazyTensor identity_like(const LazyTensor& x, std::int64_t n);

}  // namespace caldera::matrices
