// Counts what donation_stats() (engine/runtime/runtime.h) tells. Internal to the runtime.
#pragma once

#include <cstddef>

namespace caldera {

/// An output has taken the memory of an input. Thread-safe.
void count_donation(std::size_t bytes);

}  // namespace caldera
