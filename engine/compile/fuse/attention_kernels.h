// The kernels of attention: what element-wise operations do to the scores, and what their differentiation
// gives.
#pragma once

#include <cstdint>

#include "engine/compile/fuse/region_kernel.h"

namespace caldera {

/// The score of an attention node, or the gradient of the raw product, as a kernel: see AttentionStep::score
/// and AttentionStep::gradient.
RegionKernel score_kernel(const Placement& placement, std::uint32_t attention);
RegionKernel gradient_kernel(const Placement& placement, std::uint32_t attention);

}  // namespace caldera
