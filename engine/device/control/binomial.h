// Binomial checkpointing: which turns of a loop to keep while it is reversed, so that the fewest are computed
// again (Griewank and Walther 2000, "Algorithm 799: Revolve").
#pragma once

#include <cstdint>

namespace caldera {

/// The turns to run forward from a kept turn before the next one is kept, where `turns` > 1 are to be
/// reversed with `snapshots` >= 2, the first turn's among them.
std::int64_t binomial_leap(std::int64_t turns, std::int64_t snapshots);

/// The turns that are run forward in all while `turns` are reversed with `snapshots` >= 1:
/// r * turns - C(snapshots + r, snapshots + 1), where r is the least with C(snapshots + r, snapshots) >=
/// turns.
std::int64_t binomial_advances(std::int64_t turns, std::int64_t snapshots);

}  // namespace caldera
