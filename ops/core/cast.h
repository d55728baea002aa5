// astype: the elements of a tensor in another type. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// x in `dtype`: x itself if it has that. Of real numbers that become integers the fraction is cut off; what
/// is not 0 (NaN included) is true.
LazyTensor astype(const LazyTensor& x, DType dtype);

}  // namespace caldera
