// Sizes in the memory of a plan's intermediates, the arena.
#pragma once

#include <cstdint>

namespace caldera {

/// Bytes of which the offset of each intermediate is a multiple.
inline constexpr std::int64_t kArenaAlignment = 256;
/// Bytes that an allocation for intermediates has at most by default (Settings::arena_segment). Every Vulkan
/// driver promises 1 GiB in one allocation, and some do not give more; SwiftShader gives a little less.
inline constexpr std::int64_t kArenaSegment = (std::int64_t{1} << 30) - (std::int64_t{1} << 20);

}  // namespace caldera
