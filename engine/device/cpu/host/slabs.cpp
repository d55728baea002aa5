#include "engine/device/cpu/host/slabs.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace caldera::cpu {
namespace {

constexpr std::size_t kSlab = 4 * kHugePage;

}  // namespace

Slabs::~Slabs() {
  for (auto& [memory, _] : slabs_) std::free(memory);
}

std::byte* Slabs::take(std::size_t size) {
  auto room = with_room_.find(size);
  if (room == with_room_.end()) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kHugePage, kSlab) != 0) return nullptr;
#ifdef __linux__
    (void)madvise(memory, kSlab, MADV_HUGEPAGE);
#endif
    auto* first = static_cast<std::byte*>(memory);
    slabs_.emplace(first, Slab{.size = size});
    room = with_room_.emplace(size, first);
  }
  std::byte* const first = room->second;
  Slab& slab = slabs_.at(first);
  std::byte* block = slab.free;
  if (block != nullptr)
    std::memcpy(&slab.free, block, sizeof(slab.free));
  else
    block = first + slab.fresh++ * size;
  ++slab.used;
  if (slab.used == kSlab / size) with_room_.erase(room);
  return block;
}

void Slabs::give(std::byte* block) {
  const auto at = std::prev(slabs_.upper_bound(block));
  Slab& slab = at->second;
  if (slab.used == kSlab / slab.size) with_room_.emplace(slab.size, at->first);
  std::memcpy(block, &slab.free, sizeof(slab.free));
  slab.free = block;
  if (--slab.used > 0) return;
  auto room = with_room_.find(slab.size);
  while (room->second != at->first) ++room;
  with_room_.erase(room);
  std::free(at->first);
  slabs_.erase(at);
}

}  // namespace caldera::cpu
