// Lists and shared objects in memory that threads keep (small_memory.h): for what is made and dropped with
// every evaluation.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/small_memory.h"

namespace caldera {

/// An allocator of the standard library that takes blocks with allocate_small(). T is aligned to 16 at most.
/// Blocks may be freed by any thread.
template <class T>
class SmallAllocator {
 public:
  using value_type = T;

  SmallAllocator() = default;
  template <class U>
  SmallAllocator(const SmallAllocator<U>&) {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= small_memory::kUnit);
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_small(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { free_small(memory, count * sizeof(T)); }

  template <class U>
  friend bool operator==(const SmallAllocator&, const SmallAllocator<U>&) {
    return true;
  }
};

/// A std::vector in such memory.
template <class T>
using SmallList = std::vector<T, SmallAllocator<T>>;

/// Makes a shared object in such memory, with its count.
template <class T, class... Arguments>
std::shared_ptr<T> make_small_shared(Arguments&&... arguments) {
  return std::allocate_shared<T>(SmallAllocator<T>(), std::forward<Arguments>(arguments)...);
}

}  // namespace caldera
