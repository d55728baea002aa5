// Checks what the plan verifier demands of the arena: buffers within it, and segments that a device can
// allocate.
#pragma once

#include "engine/plan/plan.h"

namespace caldera::verify {

/// Throws Fault where a buffer of the arena is not aligned, leaves the arena or is in two segments, and
/// where the segments are not a partition of the arena into runs of Plan::arena_segment bytes at most; one
/// that is larger holds a buffer of its size.
void check_arena(const Plan& plan);

}  // namespace caldera::verify
