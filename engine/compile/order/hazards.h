// Hazards: a barrier stands before a dispatch only if it conflicts with one since the last barrier.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Sets barrier_before of each step that touches bytes which an earlier one, since the last barrier, has
/// touched in conflict. Memory must be planned.
void plan_barriers(Plan& plan);

}  // namespace caldera
