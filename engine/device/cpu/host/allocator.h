// Host memory for storages and arenas, with a cache of freed blocks so that a program that repeats itself
// takes nothing from the system.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/adaptive_mutex.h"
#include "engine/device/cpu/host/slabs.h"
#include "engine/device/memory_budget.h"
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

  /// 64-byte aligned, uninitialised. Where the budget or the system has no more: gives back what is cached
  /// and what other reclaimers of the budget hold, then throws OutOfMemoryError naming the bytes.
  StoragePtr allocate(std::size_t bytes);
  Counters counters() const;
  /// Gives the cached blocks back to the system; those that serve requests of `bytes`.
  void trim();
  void trim(std::size_t bytes);
  /// Gives back the blocks that were in the cache ever since the last call: what the program no longer needs.
  /// Called now and then by whoever counts the work.
  void age();
  /// Returns the budget of what is taken from the system: blocks in use, with their padding, and cached ones.
  MemoryBudget& memory() { return memory_; }
  const MemoryBudget& memory() const { return memory_; }

 private:
  class Block;
  // Four classes for every power of two: at most a fifth of a block is unused.
  static constexpr int kClasses = 4 * 48;
  static constexpr int kExact =
      -1;  // no class: taken within a limit, and where a class does not fit; never cached

  static int class_of(std::size_t bytes);
  static std::size_t class_bytes(int size_class);
  static std::size_t system_bytes(int size_class, std::size_t bytes);
  std::byte* take(int& size_class, std::size_t bytes);
  std::byte* take_cached(int size_class, std::size_t bytes);
  std::byte* take_from_system(int size_class, std::size_t bytes);
  void free_block(std::byte* data, int size_class, std::size_t bytes);
  static bool is_of_slab(int size_class);
  void count(std::size_t bytes);  // as taken; under mutex_
  void give_back(std::byte* data, int size_class, std::size_t bytes);

  mutable AdaptiveMutex mutex_;
  void release_cached(int size_class, std::size_t count);  // those given back first; under mutex_

  struct FreeList {
    std::vector<std::byte*> blocks;
    std::size_t least = 0;  // that was here at any time since the last age()
  };
  Slabs slabs_;
  std::array<FreeList, kClasses> free_;
  std::size_t cached_bytes_ = 0;
  std::size_t heap_bytes_ = 0;  // freed by age() that the C library may still hold
  MemoryBudget memory_;
  std::size_t cache_limit_;
  Counters counters_;
  MemoryBudget::Reclaimer reclaimer_;  // last: gone before what it uses
};

/// Makes the C library give what it holds of freed memory back to the system, where it can.
void trim_heap();

/// Physical memory of this machine.
std::uint64_t system_memory_bytes();

}  // namespace caldera::cpu
