// The list of physical devices that Caldera can use, in the order of their indices.
#pragma once

#include <optional>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/open/capabilities.h"
#include "engine/device/vulkan/open/device_profile.h"
#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;            // computes
  std::optional<std::uint32_t> copy_family;  // for copies alone: its queue runs beside the other
  std::uint32_t timestamp_bits = 0;          // that count in the queue's timestamps; 0: it has none
  double timestamp_period = 0;               // nanoseconds a tick
  Capabilities capabilities;
  DeviceProfile profile;
  VkPhysicalDeviceMemoryProperties memory{};
  DeviceInfo info;
};

/// Usable devices, best first: discrete, integrated, virtual, software. Made on the first call. With
/// CALDERA_VULKAN_REPEAT=N (1 to 8; for tests) each stands N times in the list, so that a machine with one
/// has several logical devices. Throws ValueError for another N.
const std::vector<PhysicalDevice>& physical_devices();

/// The device less the optional features that CALDERA_VULKAN_WITHOUT names, separated by commas (see
/// leave_out()): how a device that lacks them is treated, tried on one that has them.
PhysicalDevice as_asked_for(PhysicalDevice device);

}  // namespace caldera::vulkan
