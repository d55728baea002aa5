// Philox4x32-10: the counter-based random generator of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011). The same stream on every device.
#pragma once

#include <array>
#include <cstdint>

namespace caldera::cpu {

/// The four words of block `block` under the 64-bit `seed`: counter (block, 0, 0, 0), key (low, high) words.
constexpr std::array<std::uint32_t, 4> philox4x32(std::uint32_t block, std::uint64_t seed) {
  std::array<std::uint32_t, 4> c{block, 0, 0, 0};
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

}  // namespace caldera::cpu
