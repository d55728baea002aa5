// keep::within: the cheapest choice for a share of the memory. Part of the strategies of checkpoint().
#pragma once

#include "engine/autodiff/checkpoint/keep.h"

namespace caldera::keep {

/// Keeps at most `share` of the bytes that the backward pass reads, so that computing the rest again costs
/// the least: torch's activation_memory_budget. What is computed element by element costs nothing, as kernels
/// compute it again where they read it. 1 keeps all that the backward pass reads. Exact for up to
/// kMostChosenOneByOne values (keep_problem.h); of more, the best answer on the convex hull. Throws
/// ValueError for a share outside of 0 to 1.
Keep within(double share);

}  // namespace caldera::keep
