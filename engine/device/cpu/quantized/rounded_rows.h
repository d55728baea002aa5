// Rows of x, rounded to 8 bits by blocks as Activations says, as the loops over integers read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/quantized_format.h"

namespace caldera::cpu {

/// Few rows, one after the other, in memory that the caller gives. `columns` is a multiple of kRoundedBlock.
struct RoundedRows {
  std::int64_t columns = 0;
  std::int8_t* codes = nullptr;        ///< (rows, columns), -127 to 127
  float* scales = nullptr;             ///< (rows, blocks): x is about scale times code
  float* sums = nullptr;               ///< (rows, blocks): scale times the sum of a block's codes
  std::int32_t* minus = nullptr;       ///< (rows, blocks): that sum of codes with the other sign
  float* half_sums = nullptr;          ///< (rows, 2 blocks): the same of half a block
  std::int32_t* half_minus = nullptr;  ///< (rows, 2 blocks)

  std::int64_t blocks() const { return columns / kRoundedBlock; }
  /// Row `m` and those behind it.
  RoundedRows from(std::int64_t m) const {
    const std::int64_t b = m * blocks();
    return {columns,   codes + m * columns, scales + b,        sums + b,
            minus + b, half_sums + 2 * b,   half_minus + 2 * b};
  }

  static std::size_t bytes(std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * (columns / kRoundedBlock)) * (kRoundedBlock + 7 * sizeof(float));
  }
  /// Rows in `memory` of bytes(rows, columns), aligned to 64.
  static RoundedRows in(std::byte* memory, std::int64_t rows, std::int64_t columns) {
    const std::int64_t blocks = rows * (columns / kRoundedBlock);
    RoundedRows at;
    at.columns = columns;
    at.codes = reinterpret_cast<std::int8_t*>(memory);
    at.scales = reinterpret_cast<float*>(memory + blocks * kRoundedBlock);
    at.sums = at.scales + blocks;
    at.minus = reinterpret_cast<std::int32_t*>(at.sums + blocks);
    at.half_sums = reinterpret_cast<float*>(at.minus + blocks);
    at.half_minus = reinterpret_cast<std::int32_t*>(at.half_sums + 2 * blocks);
    return at;
  }
};

/// Rows of a tile of RoundedTiles.
inline constexpr std::int64_t kTileRows = 8;

/// A block of a row: all that a loop reads of it, in 64 bytes.
struct RoundedBlock {
  std::int8_t codes[kRoundedBlock];
  std::int32_t
      minus[2];   ///< of half a block: minus the sum of its codes, times the offset of the weights' codes
  float sums[2];  ///< of half a block
  float scale;
  float sum;                ///< of the block
  std::int32_t minus_both;  ///< of the block
  std::int32_t unused;
};
static_assert(sizeof(RoundedBlock) == 64);

/// Many rows, kTileRows of them at a time: block b of row m is that of number m % kTileRows behind
/// tile(m / kTileRows)[b * kTileRows]. Rows that fill the last tile are zero.
struct RoundedTiles {
  std::int64_t columns = 0;
  RoundedBlock* first = nullptr;  ///< aligned to 64

  std::int64_t blocks() const { return columns / kRoundedBlock; }
  RoundedBlock* tile(std::int64_t t) const { return first + t * blocks() * kTileRows; }
  static std::int64_t tiles(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }
  static std::size_t bytes(std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(tiles(rows) * kTileRows * (columns / kRoundedBlock)) *
           sizeof(RoundedBlock);
  }
};

}  // namespace caldera::cpu
