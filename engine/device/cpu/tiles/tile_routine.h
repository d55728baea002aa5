// Describes a decoded kernel for machine code.
#pragma once

#include "engine/device/cpu/machine_code/row_routine.h"
#include "engine/device/cpu/tiles/tile_program.h"

namespace caldera::cpu {

/// The whole program as a function of rows. Locations are the program's. In memory are operands, scalar
/// arguments, what lasts from pass to pass, outputs, and what is combined by the step (TileProgram::result);
/// of a part of a row, which has one pass, partial results instead of outputs that are one a row.
RowRoutine routine_of(const TileProgram& program, CodeVersion version = CodeVersion::plain);

/// The program's function, if it has one by now (see MachineCode::find).
RowFunction machine_code_of(const TileProgram& program, double nanoseconds,
                            CodeVersion version = CodeVersion::plain);

}  // namespace caldera::cpu
