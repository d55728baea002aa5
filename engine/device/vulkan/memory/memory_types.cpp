#include "engine/device/vulkan/memory/memory_types.h"

#include <optional>
#include <vector>

#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

/// The first type with all of `flags`; of several, the one with the largest heap.
std::optional<std::uint32_t> find_type(const VkPhysicalDeviceMemoryProperties& memory,
                                       VkMemoryPropertyFlags flags) {
  std::optional<std::uint32_t> best;
  const auto heap = [&](std::uint32_t type) {
    return memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
  };
  for (std::uint32_t t = 0; t < memory.memoryTypeCount; ++t) {
    constexpr VkMemoryPropertyFlags kUnwanted = VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                                VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
                                                VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
    const VkMemoryPropertyFlags has = memory.memoryTypes[t].propertyFlags;
    if ((has & flags) != flags || (has & kUnwanted) != 0) continue;
    if (!best || heap(t) > heap(*best)) best = t;
  }
  return best;
}

}  // namespace

std::uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, MemoryUse use) {
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  std::vector<VkMemoryPropertyFlags> wishes;
  if (use == MemoryUse::tensors) {
    // The whole device-local heap: a small mapped window of it (no resizable BAR) would run out first.
    const std::optional<std::uint32_t> local = find_type(memory, kLocal);
    const std::optional<std::uint32_t> both = find_type(memory, kLocal | kHostMemory);
    const auto heap = [&](std::uint32_t t) {
      return memory.memoryHeaps[memory.memoryTypes[t].heapIndex].size;
    };
    if (local && both && heap(*both) >= heap(*local)) {
      if (const auto cached = find_type(memory, kLocal | kHostMemory | kCached);
          cached && heap(*cached) >= heap(*local))
        return *cached;
      return *both;
    }
    wishes = {kLocal, 0};
  } else if (use == MemoryUse::tables) {
    wishes = {kLocal | kHostMemory, kHostMemory};
  } else {
    wishes = {kHostMemory | kCached, kHostMemory};
  }
  for (VkMemoryPropertyFlags wish : wishes) {
    if (const auto type = find_type(memory, wish)) return *type;
  }
  throw DeviceError("no usable memory type");
}

}  // namespace caldera::vulkan
