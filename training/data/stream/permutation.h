// Permutation: a random order of any length that takes little memory. Private to training/data/.
#pragma once

#include <cstdint>
#include <vector>

namespace caldera::detail {

/// A permutation of 0 to size - 1 that depends on the three numbers alone. Up to 2^16 elements it is
/// shuffled() and kept. A longer one is computed element by element: a Feistel network (Luby and Rackoff,
/// "How to construct pseudorandom permutations", 1988) over the next power of four, walked until a number is
/// within size (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch);

  /// The element at `position`, both from 0 to size - 1.
  std::int64_t operator[](std::int64_t position) const;

 private:
  static constexpr int kRounds = 6;

  std::vector<std::int64_t> kept_;
  std::uint64_t size_;
  unsigned half_bits_ = 1;
  std::uint64_t keys_[kRounds];
};

}  // namespace caldera::detail
