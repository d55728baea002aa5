#include "engine/device/vulkan/memory/memory_types.h"

#include <algorithm>
#include <optional>

#include "engine/base/error.h"

namespace caldera::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr VkMemoryPropertyFlags kUnwanted = VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                            VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
                                            VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;

/// What a type has and what it lacks.
struct Wish {
  VkMemoryPropertyFlags has = 0, lacks = 0;
};

class Types {
 public:
  explicit Types(const VkPhysicalDeviceMemoryProperties& memory) : memory_(memory) {}

  std::uint64_t heap_bytes(std::uint32_t type) const { return memory_.memoryHeaps[heap(type)].size; }

  /// The first type that is as wished and of no heap that was taken; of several, the one with the largest
  /// heap.
  std::optional<std::uint32_t> find(Wish wish) const {
    std::optional<std::uint32_t> best;
    for (std::uint32_t t = 0; t < memory_.memoryTypeCount; ++t) {
      const VkMemoryPropertyFlags flags = memory_.memoryTypes[t].propertyFlags;
      if ((flags & wish.has) != wish.has || (flags & (wish.lacks | kUnwanted)) != 0) continue;
      const auto same_heap = [&](std::uint32_t other) { return heap(other) == heap(t); };
      if (std::ranges::any_of(taken_, same_heap)) continue;
      if (!best || heap_bytes(t) > heap_bytes(*best)) best = t;
    }
    return best;
  }
  void take(std::uint32_t type) { taken_.push_back(type); }
  void take_all(Wish wish) {
    while (const auto type = find(wish)) take(*type);
  }
  const std::vector<std::uint32_t>& taken() const { return taken_; }

 private:
  std::uint32_t heap(std::uint32_t type) const { return memory_.memoryTypes[type].heapIndex; }

  const VkPhysicalDeviceMemoryProperties& memory_;
  std::vector<std::uint32_t> taken_;
};

/// The best type for tensors.
std::optional<std::uint32_t> for_tensors(const Types& types) {
  // The whole device-local heap: a small mapped window of it (no resizable BAR) would run out first.
  const std::optional<std::uint32_t> local = types.find({kLocal});
  const std::optional<std::uint32_t> both = types.find({kLocal | kHostMemory});
  const auto is_whole = [&](std::optional<std::uint32_t> type) {
    return type && types.heap_bytes(*type) >= types.heap_bytes(*local);
  };
  if (!local) return types.find({});
  if (!is_whole(both)) return local;
  const std::optional<std::uint32_t> cached = types.find({kLocal | kHostMemory | kCached});
  return is_whole(cached) ? cached : both;
}

}  // namespace

std::vector<std::uint32_t> choose_memory_types(const VkPhysicalDeviceMemoryProperties& memory, MemoryUse use,
                                               bool unified) {
  Types types(memory);
  switch (use) {
    case MemoryUse::tensors:
      if (const auto best = for_tensors(types)) types.take(*best);
      // Not the window of a discrete GPU: it is small, and the tables are there.
      types.take_all({kLocal, unified ? 0 : kVisible});
      if (unified) types.take_all({kHostMemory});
      break;
    case MemoryUse::tables:
      types.take_all({kLocal | kHostMemory});
      types.take_all({kHostMemory});
      break;
    case MemoryUse::staging:
      types.take_all({kHostMemory | kCached});
      types.take_all({kHostMemory});
      break;
  }
  if (types.taken().empty()) throw DeviceError("no usable memory type");
  return types.taken();
}

}  // namespace caldera::vulkan
