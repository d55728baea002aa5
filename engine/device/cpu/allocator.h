// Host memory for storages and arenas, with a cache of freed blocks so that a program that repeats itself
// takes nothing from the system.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/tensor/storage.h"

namespace caldera::cpu {

/// Thread-safe. Under AddressSanitizer nothing is cached, so that it sees every misuse.
class Allocator : public std::enable_shared_from_this<Allocator> {
 public:
  struct Counters {
    std::uint64_t system_blocks = 0;  // taken from the system
    std::uint64_t live_bytes = 0;
    std::uint64_t peak_bytes = 0;
  };

  Allocator();
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// 64-byte aligned, uninitialised. Throws DeviceError naming the bytes when memory is out, after giving
  /// back what is cached.
  StoragePtr allocate(std::size_t bytes);
  Counters counters() const;
  /// Gives the cached blocks back to the system.
  void trim();

 private:
  class Block;
  // Four classes for every power of two: at most a fifth of a block is unused.
  static constexpr int kClasses = 4 * 48;

  static int class_of(std::size_t bytes);
  static std::size_t class_bytes(int size_class);
  std::byte* take(int size_class, std::size_t bytes);
  void count(std::size_t bytes);  // as taken; under mutex_
  void give_back(std::byte* data, int size_class, std::size_t bytes);

  mutable std::mutex mutex_;
  std::array<std::vector<std::byte*>, kClasses> free_;
  std::size_t cached_bytes_ = 0;
  std::uint64_t memory_;  // of this machine
  std::size_t cache_limit_;
  Counters counters_;
};

/// Physical memory of this machine.
std::uint64_t system_memory_bytes();

}  // namespace caldera::cpu
