// Sha256: the hash by which files and contents are known (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace caldera {

/// Hashes bytes that come piece by piece. Copies go on on their own.
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  Sha256& add(std::span<const std::byte> bytes);
  Sha256& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  /// Returns the hash of all that was added; more may follow.
  Digest digest() const;
  /// Writes it in 64 hexadecimal digits.
  std::string hex() const;

 private:
  void take(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> held_{};
  std::uint64_t size_ = 0;
};

}  // namespace caldera
