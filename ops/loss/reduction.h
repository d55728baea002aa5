// Reduction: what becomes of the losses of the elements. Part of ops/ops.h.
#pragma once

#include <cstdint>

namespace caldera {

/// `batchmean` is the sum divided by the extent of axis 0 (of a scalar: the sum). The mean of nothing is NaN.
enum class Reduction : std::uint8_t { mean, sum, none, batchmean };

}  // namespace caldera
