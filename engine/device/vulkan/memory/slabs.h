// Small pieces of memory: slabs of pieces of one size, so that a hundred thousand small tensors cost neither
// padding, nor host memory for each, nor holes between the large ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/vulkan/memory/free_ranges.h"

namespace caldera::vulkan {

/// A range cut into pieces of one size.
struct Slab {
  Range range;
  std::uint32_t piece_bytes = 0;
  std::uint32_t pieces = 0;
  std::uint32_t used = 0;
  std::size_t home = 0;                  // position among all slabs
  std::size_t at = 0;                    // position among those of its size that have room
  std::array<std::uint64_t, 16> free{};  // a bit a piece

  bool is_full() const { return used == pieces; }
};

/// Pieces of up to kLargest bytes. Every operation takes constant time, but for making a slab. Not
/// thread-safe. Knows no device.
class Slabs {
 public:
  static constexpr std::uint64_t kStep = 64;        // sizes differ by this; every piece is so aligned
  static constexpr std::uint64_t kLargest = 4096;   // of a piece
  static constexpr std::uint64_t kSlab = 64 << 10;  // a slab is at most so long

  static bool is_small(std::uint64_t bytes) { return bytes <= kLargest; }
  /// Length of the slab that pieces of so many bytes come from: a multiple of 256.
  static std::uint64_t slab_bytes(std::uint64_t bytes);

  struct Piece {
    Slab* slab = nullptr;
    Range range;
  };
  /// A piece of a slab that has room; nothing if there is none. `bytes` is small.
  std::optional<Piece> take(std::uint64_t bytes);
  /// A piece of a new slab in `range`, which has slab_bytes(bytes).
  Piece take_from(Range range, std::uint64_t bytes);
  /// Takes a piece back. If its slab is empty now and another one has room, the slab ends, and its range is
  /// returned.
  std::optional<Range> give(Slab* slab, std::uint64_t offset);
  /// Ends the slabs that are empty and returns their ranges.
  std::vector<Range> trim();

 private:
  static constexpr std::size_t kClasses = kLargest / kStep;

  Piece piece_of(Slab& slab);
  /// The slab is full, or ends.
  void close(Slab& slab);
  Range end(Slab& slab);

  std::array<std::vector<Slab*>, kClasses> open_;  // those with room, by class
  std::vector<std::unique_ptr<Slab>> all_;
};

}  // namespace caldera::vulkan
