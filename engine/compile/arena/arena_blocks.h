// Blocks of memory that are needed for a time, layouts of them, and the orders in which these take them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace caldera {

/// A block of memory that is needed from time `first` to time `last`, both included.
struct ArenaBlock {
  std::int64_t bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct ArenaLayout {
  std::vector<std::int64_t> offsets;  // of each block
  std::int64_t bytes = 0;
  std::vector<std::int64_t> cuts;  // where segments begin but for the first: see Plan::arena_cuts
};

/// More blocks than this are laid out only in ways that are near-linear.
inline constexpr std::size_t kManyBlocks = 1200;

inline bool live_together(const ArenaBlock& a, const ArenaBlock& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Blocks by the time they are first needed, earliest first.
inline std::vector<std::uint32_t> by_time(const std::vector<ArenaBlock>& blocks) {
  std::vector<std::uint32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return blocks[a].first < blocks[b].first; };
  if (!std::is_sorted(order.begin(), order.end(), earlier))
    std::stable_sort(order.begin(), order.end(), earlier);
  return order;
}

/// Blocks by size, the largest first; of several, the earliest.
inline std::vector<std::uint32_t> by_size(const std::vector<ArenaBlock>& blocks) {
  std::vector<std::uint32_t> order = by_time(blocks);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return blocks[a].bytes > blocks[b].bytes; });
  return order;
}

/// Blocks by the time they are needed for, the longest first; of several, the earliest.
inline std::vector<std::uint32_t> by_lifetime(const std::vector<ArenaBlock>& blocks) {
  std::vector<std::uint32_t> order = by_time(blocks);
  const auto time = [&](std::uint32_t b) { return blocks[b].last - blocks[b].first; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return time(a) > time(b); });
  return order;
}

/// Calls born(block) and died(block) in order of time; all that dies at a time does so after all that is born
/// at it.
template <class Born, class Died>
void walk(const std::vector<ArenaBlock>& blocks, Born born, Died died) {
  const std::vector<std::uint32_t> births = by_time(blocks);
  std::vector<std::uint32_t> deaths(births);
  std::stable_sort(deaths.begin(), deaths.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return blocks[a].last < blocks[b].last; });
  auto dead = deaths.begin();
  for (std::uint32_t b : births) {
    for (; blocks[*dead].last < blocks[b].first; ++dead) died(*dead);
    born(b);
  }
}

}  // namespace caldera
