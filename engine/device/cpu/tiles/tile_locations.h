// Locations of the values of a program: how they are numbered while it is decoded, and what is known of them
// once all of it is there.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/cpu/tiles/tile_program.h"
#include "engine/plan/kernel/kernel.h"

namespace caldera::cpu {

// Until their numbers are known, locations of these kinds are numbered from here.
inline constexpr std::uint16_t kKept = 0x4000;       // one a point, lasts from pass to pass
inline constexpr std::uint16_t kTemporary = 0x6000;  // one a point
inline constexpr std::uint16_t kRow = 0x8000;        // one a row
inline constexpr std::uint16_t kOutput = 0xc000;

/// Gives those locations their final numbers.
void number_locations(TileProgram& program);

/// Sets Output::direct.
void find_direct_outputs(TileProgram& program);

/// Lists the operands that are read one a row (those given) and one a point. `only_evaluates`: what is
/// combined is left to the step, and read too.
void list_operands(TileProgram& program, const std::vector<bool>& row_inputs,
                   const std::vector<bool>& row_indices, bool only_evaluates);

/// Gives a tile as many points as keep its buffers in the first cache.
void choose_tile(TileProgram& program, const Kernel& kernel);

}  // namespace caldera::cpu
