// From a kernel to a program of micro-operations over tiles.
#pragma once

#include "engine/device/cpu/tiles/tile_form.h"
#include "engine/device/cpu/tiles/tile_program.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera::cpu {

/// Decodes a kernel. Throws DTypeError naming the kernel and the operation where the CPU has no function.
TileProgram decode(const Kernel& kernel, const TileForm& form);

}  // namespace caldera::cpu
