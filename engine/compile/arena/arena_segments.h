// Layouts in segments, for an arena that is more than a device gives in one allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compile/arena/arena_blocks.h"

namespace caldera {

/// A layout of which no block is across a cut. No segment is larger than `segment`, a multiple of
/// kArenaAlignment, but one that has a block of its size. Segments are as large as what is in them, so that
/// one after the other leaves no holes. The smallest of a few that strategies find, as those of lay_out are.
ArenaLayout lay_out_in_segments(const std::vector<ArenaBlock>& blocks, std::int64_t segment);

}  // namespace caldera
