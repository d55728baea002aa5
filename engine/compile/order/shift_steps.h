// Shifting: steps of an order move towards the steps that they depend on, or that depend on them, where less
// is alive in between then.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compile/order/step_graph.h"

namespace caldera {

/// Returns an order in which each step runs as late as it can where that keeps less alive: what makes more
/// than it frees right before its first reader; and then as early as it can where that keeps less alive:
/// what frees more than it makes right after what it reads. Greedy orders leave such steps behind, as values
/// that are computed again in a backward pass, which cost little wherever they run. Near-linear.
std::vector<std::uint32_t> shift_steps(const StepGraph& graph, const std::vector<std::uint32_t>& order);

}  // namespace caldera
