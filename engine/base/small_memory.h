// Memory for what is made and dropped in loops, as nodes of graphs are: each thread keeps blocks that it
// freed, and takes them first.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace caldera {

/// A thread keeps so much; the rest goes back to the allocator, as it all does when the thread ends.
inline constexpr std::size_t kMostSmallMemory = std::size_t{4} << 20;

namespace small_memory {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsKept = false;  // so that the use of what is gone is seen
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kIsKept = false;
#else
inline constexpr bool kIsKept = true;
#endif
#else
inline constexpr bool kIsKept = true;
#endif
inline constexpr std::size_t kUnit = 16;
inline constexpr std::size_t kSizes = 17;  // larger ones are few: they are the allocator's
constexpr std::size_t units_of(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit; }

struct Free {
  Free* next;
};

/// Needs no constructor and no destructor, so that it can be reached without a check, and by static
/// destructors too.
struct Store {
  std::array<Free*, kSizes> blocks;  // by their size in units
  std::size_t bytes;
  bool is_open;  // the thread gives the blocks back when it ends, which it has not
};
extern constinit thread_local Store store;

/// Allocates where the store does not help.
void* allocate(std::size_t units);
void free(void* memory, std::size_t units) noexcept;

}  // namespace small_memory

/// So many bytes, aligned to 16. Throws std::bad_alloc.
inline void* allocate_small(std::size_t bytes) {
  const std::size_t units = small_memory::units_of(bytes);
  if (small_memory::kIsKept && units < small_memory::kSizes) {
    small_memory::Store& mine = small_memory::store;
    if (small_memory::Free* block = mine.blocks[units]; block != nullptr) {
      mine.blocks[units] = block->next;
      mine.bytes -= units * small_memory::kUnit;
      return block;
    }
  }
  return small_memory::allocate(units);
}

/// `bytes` as they were asked for. By any thread.
inline void free_small(void* memory, std::size_t bytes) noexcept {
  const std::size_t units = small_memory::units_of(bytes);
  small_memory::Store& mine = small_memory::store;
  if (!small_memory::kIsKept || units >= small_memory::kSizes || mine.bytes >= kMostSmallMemory ||
      !mine.is_open) {
    small_memory::free(memory, units);
    return;
  }
  mine.blocks[units] = new (memory) small_memory::Free{mine.blocks[units]};
  mine.bytes += units * small_memory::kUnit;
}

/// Gives what this thread keeps back to the allocator.
void trim_small_memory() noexcept;

/// Base of classes whose objects are in such memory.
template <class T>
class InSmallMemory {
 public:
  static void* operator new(std::size_t bytes) { return allocate_small(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { free_small(memory, bytes); }
};

}  // namespace caldera
