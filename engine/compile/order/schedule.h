// Schedule: the order in which the steps of a plan run.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Reorders the steps so that the arena bytes alive at any one time stay low; what the steps compute does not
/// change. Small plans get an order of least peak, large ones the best of a few found greedily, and none a
/// worse one than they came with. Steps must not be joined yet. Near-linear in the size of the plan;
/// deterministic.
void schedule(Plan& plan);

/// The most arena bytes alive at once when the steps run in the order they have, with every block rounded up
/// to kArenaAlignment and outputs in place of dying operands where that is possible.
std::int64_t peak_of_live_bytes(const Plan& plan);

}  // namespace caldera
