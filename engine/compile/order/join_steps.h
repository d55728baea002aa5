// Joining: small steps that run the same kernel and do not depend on one another become one dispatch.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Reorders the steps of a plan so that those that can share a dispatch follow one another, and marks them. A
/// step that waits for others like it runs at the latest where its result is needed. Before memory is
/// planned.
void join_steps(Plan& plan);

}  // namespace caldera
