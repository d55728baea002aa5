// ArenaLayout: offsets for blocks of known lifetimes, so that no two that live at once overlap.
#pragma once

#include <cstdint>
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
};

/// The most bytes alive at any time: no layout is smaller.
std::int64_t peak_of(const std::vector<ArenaBlock>& blocks);

/// The smallest layout that a few strategies find: best fit in order of time; the largest first; and, for few
/// blocks, a search. Near-linear for many blocks.
ArenaLayout lay_out(const std::vector<ArenaBlock>& blocks);

}  // namespace caldera
