// Which types of a device's memory serve which use.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// Names what memory is for, which decides its type.
enum class MemoryUse : std::uint8_t {
  tensors,  // device-local, mapped where that costs nothing
  tables,   // written by the host at every replay, read by kernels
  staging,  // copies to and from the host
};

/// Memory that the host can map, and need not flush.
inline constexpr VkMemoryPropertyFlags kHostMemory =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

/// Indices of the memory types that serve a use: the best one, then those to turn to where its heap has no
/// more, each of another heap. Tensors get memory that the host can map only where all of the device's memory
/// is such (unified memory, or a resizable BAR): then they are written and read without copies. They turn to
/// memory that is not the device's own only where `unified` says that it is as near: integrated GPUs with a
/// small part of their own. Tables and staging are always mapped. Throws DeviceError when the device has no
/// usable type.
std::vector<std::uint32_t> choose_memory_types(const VkPhysicalDeviceMemoryProperties& memory, MemoryUse use,
                                               bool unified);

}  // namespace caldera::vulkan
