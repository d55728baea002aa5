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
/// kept, and kept ones are released behind their step. `always` bytes live all the time. Throws ValueError
/// unless `kept` has a word for each value.
ChainAnswer chain_answer(std::span<const ChainValue> values, std::int64_t always, std::vector<bool> kept);

/// Returns the answer of the fewest seconds whose peak is at most `limit`; of equals the one of the lowest
/// peak, and of those the one that keeps the fewest bytes. Exact, and for thousands of values too. Throws
/// OutOfMemoryError that states the least limit that would do; ValueError for numbers that are negative or
/// not finite; and ValueError where a proof takes too many cases, as for dozens of sizes without a common
/// unit whose seconds are in proportion to them.
///
/// It is a knapsack whose room grows along the chain: the peaks say how many bytes of the first i values may
/// be kept. Dynamic programming over pairs of bytes and seconds of which none beats another in both
/// (Nemhauser and Ullmann 1969, "Discrete dynamic programming and capital allocation"), less those that the
/// prices of the linear relaxation prove to be no part of an optimum. There are at most as many pairs as sums
/// of sizes, so that blocks with equal values take polynomial time.
ChainAnswer cheapest_chain(std::span<const ChainValue> values, std::int64_t always, std::int64_t limit);

}  // namespace caldera
