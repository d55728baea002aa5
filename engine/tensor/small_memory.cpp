#include "engine/tensor/small_memory.h"

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
    static thread_local const Watch watch;
    if (units < kSizes) {
      free_small(memory, units * kUnit);
      return;
    }
  }
  ::operator delete(memory);
}

}  // namespace small_memory

void trim_small_memory() noexcept {
  using namespace small_memory;
  for (Free*& block : store.blocks) {
    while (block != nullptr) {
      Free* next = block->next;
      ::operator delete(block);
      block = next;
    }
  }
  store.bytes = 0;
}

}  // namespace caldera
