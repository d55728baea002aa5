// Runs of a tile that are no copies of neighbours: every other element of memory, one element again and
// again, coordinates. Made for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// Writes out[i] = from[2 * i] for i in [0, n), elements of `size` bytes. Reads no element behind the last.
void gather_every_other(const std::byte* from, std::byte* out, std::int64_t n, std::size_t size);

/// Writes one element of `size` bytes n times.
void repeat_element(const std::byte* element, std::byte* out, std::int64_t n, std::size_t size);

/// Writes out[i] = first + i * step for i in [0, n), in a type that is computed with.
void write_coordinates(DType type, std::int64_t first, std::int64_t step, std::byte* out, std::int64_t n);

}  // namespace caldera::cpu
