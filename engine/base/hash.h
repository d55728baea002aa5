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
  constexpr void mix(std::uint64_t word) { mix_both(word, word); }
  /// Mixes in two words that stand for the same, one a lane.
  constexpr void mix_both(std::uint64_t for_lo, std::uint64_t for_hi) {
    lo = std::rotl((lo ^ for_lo) * 0xbf58476d1ce4e5b9ULL, 29);
    hi = std::rotl((hi + for_hi) * 0x94d049bb133111ebULL, 37) ^ lo;
  }
  constexpr void mix(std::string_view text) {
    mix(static_cast<std::uint64_t>(text.size()));
    for (char c : text) mix(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  friend constexpr bool operator==(const Hash128&, const Hash128&) = default;
};

/// The hash of a few words that are a part of a structure, to be mixed into that of the whole: sums of
/// products, which do not wait for the parts before, as mixing word by word would.
struct PartHash {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;

  constexpr PartHash(std::uint64_t first, std::uint64_t second)
      : lo(first * 0x9fb21c651e98df25ULL + second * 0xd1342543de82ef95ULL),
        hi(first * 0xa24baed4963ee407ULL + second * 0xaf251af3b0f025b5ULL) {}
  constexpr void mix(std::uint64_t word) {
    lo += word * lo_factor_;
    hi += word * hi_factor_;
    lo_factor_ *= 0xd1342543de82ef95ULL;  // odd, as the factors are: no word is lost
    hi_factor_ *= 0xaf251af3b0f025b5ULL;
  }

 private:
  std::uint64_t lo_factor_ = 0x9ddfea08eb382d69ULL;
  std::uint64_t hi_factor_ = 0xc6a4a7935bd1e995ULL;
};

}  // namespace caldera

template <>
struct std::hash<caldera::Hash128> {
  std::size_t operator()(const caldera::Hash128& h) const noexcept { return h.lo ^ std::rotl(h.hi, 17); }
};
