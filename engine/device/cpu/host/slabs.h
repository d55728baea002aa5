// Blocks of middling size out of large pages: weights and activations that are smaller than a page of 2 MiB
// share such pages, as every page that a processor walks through costs a look-up.
#pragma once

#include <cstddef>
#include <map>

namespace caldera::cpu {

/// Size of a large page of the system.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Cuts blocks out of slabs, each of which has blocks of one size. Not thread-safe.
class Slabs {
 public:
  /// Bounds the sizes of blocks that gain: [kSmallest, kLargest).
  static constexpr std::size_t kSmallest = std::size_t{256} << 10;
  static constexpr std::size_t kLargest = 2 * kHugePage;

  Slabs() = default;
  ~Slabs();
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  /// Returns a block of `size` bytes, a multiple of 64 in the bounds, aligned to 64; nullptr where the system
  /// has no more.
  std::byte* take(std::size_t size);
  /// Takes a block back. The slab goes back to the system with its last block.
  void give(std::byte* block);

 private:
  struct Slab {
    std::size_t size;           // of a block
    std::size_t used = 0;       // blocks
    std::byte* free = nullptr;  // a list: each free block begins with the address of the next one
    std::size_t fresh = 0;      // blocks from the start on that were given out at some time
  };

  std::map<std::byte*, Slab> slabs_;                  // by address
  std::multimap<std::size_t, std::byte*> with_room_;  // by size of their blocks
};

}  // namespace caldera::cpu
