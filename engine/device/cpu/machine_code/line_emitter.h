// Emits one line of a program: an operation on all lanes.
#pragma once

#include <optional>

#include "engine/device/cpu/machine_code/lane_memory.h"
#include "engine/device/cpu/machine_code/row_routine.h"

namespace caldera::cpu {

/// The value of the line; nothing where machine code lacks the operation on its types.
std::optional<LaneValue> emit_line(const Lanes& lanes, const RoutineLine& line, const LaneValue& a,
                                   const LaneValue& b, const LaneValue& c);

}  // namespace caldera::cpu
