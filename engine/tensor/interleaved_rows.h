// Interleaved rows: how kInterleavedRows rows of a block format lie in memory so that one vector instruction
// takes the same columns of all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/tensor/quantized_format.h"

namespace caldera {

/// Counts the rows that are interleaved with each other.
inline constexpr std::int64_t kInterleavedRows = 16;
/// Counts the columns of a chunk: a large block, or eight small ones.
inline constexpr std::int64_t kInterleavedColumns = 256;

/// Names bytes of a block, [first, first + bytes), which are interleaved by `unit` bytes.
///
/// Sixteen rows take the memory that they took, and hold the same bytes: chunk by chunk, for each run of the
/// format, in order, for each block of the chunk, for each unit of the run, that unit of row 0, of row 1, ...
/// of row 15. Runs that are behind the chunks come after the last of these, each for all blocks of a row:
/// what is left of a chunk is a whole number of cache lines.
struct InterleavedRun {
  std::int16_t first, bytes, unit;
  bool is_behind_chunks = false;
};

/// Returns the runs of a format, those behind the chunks last; none of formats that are not interleaved.
std::span<const InterleavedRun> interleaved_runs(QuantizedFormat format);

/// Says why rows that the layout says are interleaved cannot be; returns nothing where they can, or are not.
std::string_view why_not_interleaved(const QuantizedLayout& layout, std::int64_t rows);

/// Says whether rows of this layout could be interleaved, and are not yet.
bool may_interleave(const QuantizedLayout& layout, std::int64_t rows);

/// Interleaves sixteen rows of `columns` elements, one after the other in `rows`, into `out`.
void interleave_rows(QuantizedFormat format, const std::byte* rows, std::int64_t columns, std::byte* out);

/// Writes one of sixteen interleaved rows as a row of blocks.
void separate_row(QuantizedFormat format, const std::byte* rows, std::int64_t columns, std::int64_t row,
                  std::byte* out);

}  // namespace caldera
