// Which type of a device's memory serves which use.
#pragma once

#include <cstdint>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// What memory is for, which decides its type.
enum class MemoryUse : std::uint8_t {
  tensors,  // device-local, mapped where that costs nothing
  tables,   // written by the host at every replay, read by kernels
  staging,  // copies to and from the host
};

/// What the host can map, and needs not flush.
inline constexpr VkMemoryPropertyFlags kHostMemory =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

/// Index of the memory type. Tensors get memory that the host can map only where all of the device's memory
/// is such (unified memory, or a resizable BAR): then they are written and read without copies. Throws
/// DeviceError when the device has no usable type.
std::uint32_t choose_memory_type(const VkPhysicalDeviceMemoryProperties& memory, MemoryUse use);

}  // namespace caldera::vulkan
