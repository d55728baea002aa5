// Prints what CALDERA_DEBUG asks for to standard error.
#pragma once

#include "engine/device/backend.h"
#include "engine/explain/records.h"

namespace caldera {

/// Prints a new plan: at level 1 a line, from 3 on its steps, from 4 on their generated code as well. Nothing
/// at 0.
void print_plan(const Plan& plan, int level, CodeWriter code);

/// Prints a replay that has ended: a line a kernel with its time and rates, and the whole.
void print_run(const RunRecord& run);

}  // namespace caldera
