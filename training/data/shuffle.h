// shuffled(): permutations that are the same on every machine. Private to training/data/.
#pragma once

#include <cstdint>
#include <vector>

namespace caldera {

/// Returns a permutation of 0 to size - 1, uniformly drawn, that depends on the three numbers alone: the
/// standard library's shuffle and distributions differ between implementations; an order of training data
/// must not.
std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed, std::uint64_t epoch);

}  // namespace caldera
