// Loops and branches, from the contract in engine/graph/control_layout.h.
#pragma once

#include <functional>

#include "engine/check/reference/step_memory.h"

namespace caldera::reference {

/// Runs a plan on its memory: that of a part.
using RunPart = std::function<void(const Plan&, PlanMemory&)>;

/// Runs the step. A reversal keeps the carries of all turns: it knows nothing of snapshots.
void run_control(const StepMemory& memory, const ControlStep& control, const RunPart& run_part);

}  // namespace caldera::reference
