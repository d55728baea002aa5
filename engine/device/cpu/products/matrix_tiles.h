// Tiles of products of bf16 numbers by processors that multiply small matrices (Intel AMX): what multiplies
// one packed panel with another. panel_tiles.h finds them where they are.
#pragma once

#include <cstdint>

#include "engine/device/cpu/products/panel.h"

namespace caldera::cpu {

/// Rows and columns of a tile of C, of two by two matrices in registers.
inline constexpr std::int64_t kMatrixTileRows = 32, kMatrixTileColumns = 32;
/// Words of two terms that one instruction multiplies: panels are so many deep, or a multiple.
inline constexpr std::int64_t kMatrixTileDepth = 16;

/// Whether the processor has such registers and the system lets this process use them, which it is asked for
/// once.
bool has_matrix_tiles();

/// Sets up the registers of this thread; release_matrix_tiles() gives them back.
void take_matrix_tiles();
void release_matrix_tiles();

/// Multiplies a panel of A, whose rows are 16 words long: words[p / 16][row][p % 16], and one of B:
/// words[p][column]. Between the calls above alone. Of sixteen words the sums of the first terms and of the
/// second are made apart, and then added to those before.
void multiply_matrix_tile(std::int64_t depth, const std::uint32_t* a, const std::uint32_t* b,
                          const PanelTile& tile);

}  // namespace caldera::cpu
