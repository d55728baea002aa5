// Simplification: which nodes compute the same value.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/compile/program.h"

namespace caldera {

/// For each node the position of an equal node that stands for it (itself if none): identities vanish, common
/// sub-expressions coincide. Leaves stand for themselves: equal now need not mean equal at the next replay.
std::vector<std::uint32_t> simplify(const Program& program);

}  // namespace caldera
