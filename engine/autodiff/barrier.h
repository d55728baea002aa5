// behind_barrier: what is computed when. Internal to the transforms and to losses that bound their memory.
#pragma once

#include <span>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// `x`, for what is to be computed once `after` are there. What computes x takes in nothing that reads it
/// behind the barrier: x itself may be computed long before. It is differentiated as x is.
LazyTensor behind_barrier(const LazyTensor& x, std::span<const LazyTensor> after);

}  // namespace caldera
