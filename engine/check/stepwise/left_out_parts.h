// accept_left_out_parts: a device may leave out keys that nobody sees.
#pragma once

#include <vector>

#include "engine/check/reference/plan_memory.h"
#include "engine/plan/plan.h"

namespace caldera::check {

/// Gives `expected` the zeros that a device may have in place of a part of the keys of which a row of queries
/// sees nothing (CausalMask::in_parts), wherever `got` has them and the interpreter agrees that the row's
/// highest score is the fill of the mask. Does nothing for other steps.
void accept_left_out_parts(const Plan& plan, const Step& step, const std::vector<std::vector<std::byte>>& got,
                           reference::PlanMemory& expected);

}  // namespace caldera::check
