// Offsets for blocks of known lifetimes, so that no two that live at once overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compile/arena/arena_blocks.h"

namespace caldera {

/// The most bytes alive at any time: no layout is smaller.
std::int64_t peak_of(const std::vector<ArenaBlock>& blocks);

/// The smallest layout that a few strategies find: best fit in order of time; the largest first; and, for few
/// blocks, a search. Near-linear for many blocks. What needs more than `segment` bytes is laid out in
/// segments (arena_segments.h).
ArenaLayout lay_out(const std::vector<ArenaBlock>& blocks, std::int64_t segment);

}  // namespace caldera
