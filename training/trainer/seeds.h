// The streams of a run's seed: what is random in one thing does not depend on another. Private to
// training/trainer/.
#pragma once

#include <cstdint>

#include "lm/nn/module.h"

namespace caldera::detail {

inline constexpr std::uint64_t kDataStream = 1;
inline constexpr std::uint64_t kDropoutStream = 2;
inline constexpr std::uint64_t kDrawnStream = 3;
inline constexpr std::uint64_t kSetUpStream = 4;

}  // namespace caldera::detail
