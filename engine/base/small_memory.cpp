#include "engine/base/small_memory.h"

namespace caldera {
namespace small_memory {
namespace {

constinit thread_local bool is_closed = false;  // the thread is ending

/// Gives back what the thread keeps as it ends.
struct Watch {
  Watch() { store.is_open = true; }
  ~Watch() {
    trim_small_memory();
    is_closed = true;
    store.is_open = false;
  }
};

}  // namespace

constinit thread_local Store store{};

void* allocate(std::size_t units) { return ::operator new(units* kUnit); }

void free(void* memory, std::size_t units) noexcept {
  if (kIsKept && !is_closed && !store.is_open) {
    static thread_local const Watch kWatch;
    if (units < kSizes) {
      free_small(memory, units * kUnit);
      return;
    }
  }
  ::operator delete(memory);
}

}  // namespace small_memory

void trim_small_memory() noexcept {
  small_memory::Store& mine = small_memory::store;
  for (small_memory::Free*& block : mine.blocks) {
    while (block != nullptr) {
      small_memory::Free* next = block->next;
      ::operator delete(block);
      block = next;
    }
  }
  mine.bytes = 0;
}

}  // namespace caldera
