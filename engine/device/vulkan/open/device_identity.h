// Identifies a device and its driver: files that belong to them are named by it and checked against it.
#pragma once

#include <string>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// Name, vendor, device, driver version and the driver's pipeline cache UUID, as one word without spaces.
/// Another driver version is another identity.
std::string device_identity(VkPhysicalDevice device);

}  // namespace caldera::vulkan
