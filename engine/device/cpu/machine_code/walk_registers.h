// Estimates the registers that a walk's values take, so that as many points are laid side by side as fit.
#pragma once

#include "engine/device/cpu/machine_code/row_routine.h"

namespace caldera::cpu {

/// Operands that a line reads.
int operands_of(const RoutineLine& line);

/// Counts the values of one point that are alive at a time, and what a function takes beside them.
int registers_of_point(const RowRoutine& routine, const RoutineWalk& walk);

/// Counts the values that all points read, and the partial results of reductions, `parts` of each.
int registers_of_walk(const RowRoutine& routine, const RoutineWalk& walk, int parts);

}  // namespace caldera::cpu
