// A 128-bit hash for structures: plans, kernels. Not cryptographic; never stored on disk across versions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace caldera {

/// 128 bits: accidental collisions are out of reach for any number of plans a process can hold.
struct Hash128 {
  std::uint64_t lo = 0x9e3779b97f4a7c15ULL;
  std::uint64_t hi = 0xc2b2ae3d27d4eb4fULL;

  /// Mixes one word in; order matters. Two independent multiply-rotate lanes (constants from splitmix64).
  constexpr void mix(std::uint64_t word) {
    lo = std::rotl((lo ^ word) * 0xbf58476d1ce4e5b9ULL, 29);
    hi = std::rotl((hi + word) * 0x94d049bb133111ebULL, 37) ^ lo;
  }
  constexpr void mix(std::string_view text) {
    mix(static_cast<std::uint64_t>(text.size()));
    for (char c : text) mix(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  friend constexpr bool operator==(const Hash128&, const Hash128&) = default;
};

}  // namespace caldera

template <>
struct std::hash<caldera::Hash128> {
  std::size_t operator()(const caldera::Hash128& h) const noexcept { return h.lo ^ std::rotl(h.hi, 17); }
};
