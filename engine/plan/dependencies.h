// Which steps of a plan must come before which, and how deep that makes the plan.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

/// The numbers of an earlier step and of a later one that depends on it.
using StepEdge = std::pair<std::uint32_t, std::uint32_t>;

/// Every dependency between two steps, by the later step. A step depends on another if it touches what that
/// writes, or writes what that touches, in the same buffer; that two buffers share memory of the arena counts
/// for nothing. An edge may stand more than once, and one that follows from others may be missing.
std::vector<StepEdge> dependencies_of(const Plan& plan);

/// Dispatches on the longest chain of dependencies through the plan. No order of its dispatches has fewer
/// than depth - 1 barriers. 0 for a plan without steps.
int depth_of(const Plan& plan);

}  // namespace caldera
