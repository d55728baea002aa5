// The global generator: the seeds of calls that name none. Part of ops/ops.h.
#pragma once

#include <cstdint>

namespace caldera {

/// Starts the global generator again: the calls without a seed that follow draw the same numbers as they did
/// after the last manual_seed() of the same number. A program begins as if with manual_seed(0). Thread-safe;
/// but calls from several threads draw in the order in which they come.
void manual_seed(std::uint64_t seed);

/// A seed for one call, another one at every call: what random operations take that are given none. The
/// generator's seed and the number of calls since decide it; it becomes the key of the operation's own Philox
/// stream.
std::uint64_t next_seed();

}  // namespace caldera
