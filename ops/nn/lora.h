// The product of low rank that adapters add. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// (scale * (x @ a)) @ b: x (..., in), a (in, rank), b (rank, out).
LazyTensor lora_delta(const LazyTensor& x, const LazyTensor& a, const LazyTensor& b, double scale);

}  // namespace caldera
