// The depth of a plan's dispatches, derived from the contracts alone: element by element, one buffer at a
// time. Shares no code with the compiler.
#pragma once

#include "engine/plan/plan.h"

namespace caldera::testing {

/// Dispatches on the longest way through a plan on which each reads what the one before has written.
int depth_by_reads(const Plan& plan);

/// The same, where a dispatch also waits for what it overwrites: for earlier writes and reads of the same
/// element of the same buffer. That buffers share memory counts for nothing.
int depth_by_elements(const Plan& plan);

}  // namespace caldera::testing
