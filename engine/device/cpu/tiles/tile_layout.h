// A decoded kernel together with where its operands are: all that a TileRunner needs but the addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/cpu/tiles/tile_access.h"
#include "engine/device/cpu/tiles/tile_program.h"

namespace caldera::cpu {

/// Holds what a step is run with: the address of each plan buffer and the plan's scalar arguments.
struct RunContext {
  std::span<std::byte* const> buffers;
  std::span<const std::uint64_t> scalars;
};

struct BoundOperand {
  std::int32_t buffer = -1;  // -1: an index operand, or memory that is given at run time and contiguous
  std::size_t size = 4;      // of an element
  Access access;             // over the points, or over the rows where the operand is one a row
  bool repeats = false;      // the same run of elements over and over
};

struct TileLayout {
  std::shared_ptr<const TileProgram> program;
  std::vector<BoundOperand> inputs, indices, outputs;
  std::vector<std::int32_t> scalars;  // plan scalar of each scalar argument
  std::int64_t row = 0;               // points of a row
  std::int64_t tile = 0;              // most points of a tile
  std::int64_t rows = 1;              // most rows of a tile
};

}  // namespace caldera::cpu
