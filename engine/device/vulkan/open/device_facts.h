// Holds what a driver says of its device that profiles are made from (device_profile.h).
#pragma once

#include <cstdint>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

struct DeviceFacts {
  std::uint32_t vendor_id = 0;  // of PCI
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  VkDriverId driver{};
  std::uint32_t compute_units = 0;   // 0: the driver has no extension that says so
  std::uint32_t waves_per_simd = 0;  // VK_AMD_shader_core_properties
  bool packed_dot = false;           // integerDotProduct4x8BitPackedMixedSignednessAccelerated
  bool size_control = false;         // kernels may require a subgroup size
  std::uint32_t subgroup_size = 1;   // what the driver takes by itself
  std::uint32_t least_subgroup_size = 1, most_subgroup_size = 1;
};

/// Asks the driver. The device has Vulkan 1.2.
DeviceFacts query_facts(VkPhysicalDevice device);

}  // namespace caldera::vulkan
