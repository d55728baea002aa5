// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): what seeds and
// orders are mixed with. The same on every platform, unlike the distributions of the standard library.
#pragma once

#include <cstdint>

namespace caldera {

/// The generator's state advances by this at each step.
inline constexpr std::uint64_t kSplitMix64Step = 0x9e3779b97f4a7c15U;

/// The output of the generator for a state: a bijection, so that no two states give one number, and
/// neighbouring states give unrelated ones.
constexpr std::uint64_t splitmix64(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9U;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebU;
  return state ^ (state >> 31);
}

}  // namespace caldera
