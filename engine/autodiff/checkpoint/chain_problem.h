// ChainProblem: which values of a chain to keep, so that its highest moment fits into a limit of memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace caldera {

/// A value of a chain, computed from the one before.
struct ChainValue {
  std::int64_t bytes = 0;           ///< of it
  double seconds = 0;               ///< to compute it again
  std::int64_t forward_bytes = 0;   ///< that its computation takes besides
  std::int64_t backward_bytes = 0;  ///< that its step of the backward pass takes besides
};

/// An answer.
struct ChainAnswer {
  std::vector<bool> kept;
  std::int64_t peak_bytes = 0;  ///< of the whole, with what always lives
  double seconds = 0;           ///< of what is computed again
};

/// Counts what it takes to keep `kept` and nothing else. The forward pass computes one value after the other;
/// each is released once the next is there, and the last at the end, unless it is kept. The backward pass
/// goes from the last value to the first; a step needs its value, computed again for it alone if it was not
/// kept, and kept ones are released behind their step. `always` bytes live all the time.
ChainAnswer chain_answer(std::span<const ChainValue> values, std::int64_t always, std::vector<bool> kept);

/// Returns the answer of the fewest seconds whose peak is at most `limit`; of equals the one of the lowest
/// peak. Exact: dynamic programming over the bytes that are kept, of which no answer beaten in both bytes and
/// seconds is followed. Throws OutOfMemoryError that states the least limit that would do.
ChainAnswer cheapest_chain(std::span<const ChainValue> values, std::int64_t always, std::int64_t limit);

}  // namespace caldera
