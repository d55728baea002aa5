// Says where the CPU gains from interleaved rows of quantised matrices, and interleaves them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/interleaved_rows.h"

namespace caldera {

/// Says whether products of rounded rows with such a matrix read interleaved rows faster: where the processor
/// has instructions that add products of four bytes. Thread-safe.
bool cpu_prefers_interleaved(const QuantizedLayout& layout, std::int64_t rows);

/// Interleaves `rows` rows, a multiple of kInterleavedRows, on the threads of the CPU device. Thread-safe.
void cpu_interleave(QuantizedFormat format, const std::byte* from, std::int64_t rows, std::int64_t columns,
                    std::byte* to);
/// Does the reverse.
void cpu_separate(QuantizedFormat format, const std::byte* from, std::int64_t rows, std::int64_t columns,
                  std::byte* to);

}  // namespace caldera
