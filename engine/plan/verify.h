// The plan verifier: the proof that a plan is right, derived from the contracts alone.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Proves a plan from scratch: operands within their buffers, everything read was written and not overwritten
/// since, no two conflicting accesses without a barrier between. Throws PlanError that names the step.
void verify_plan(const Plan& plan);

}  // namespace caldera
