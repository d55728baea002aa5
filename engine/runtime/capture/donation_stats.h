// Counts the outputs that have taken the memory of an input. Internal to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caldera {

/// An output has taken the memory of an input. Thread-safe.
void count_donation(std::size_t bytes);

/// Since the start of the process.
std::uint64_t donated_buffers();
std::uint64_t donated_bytes();

}  // namespace caldera
