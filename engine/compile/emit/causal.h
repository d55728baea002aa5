// The causal mask, found in the kernel of a score.
#pragma once

#include "engine/compile/fuse/region_kernel.h"
#include "engine/plan/plan.h"

namespace caldera {

/// Finds the causal mask of a score over (batch..., M, N) with M queries. `fill` is -1 where no causal mask
/// is seen.
CausalMask find_causal_mask(const RegionKernel& score, std::int64_t queries);

}  // namespace caldera
