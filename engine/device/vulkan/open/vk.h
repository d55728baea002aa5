// Vulkan's types through volk, and its results as exceptions.
#pragma once

#include <volk.h>

#include <string>
#include <string_view>

namespace caldera::vulkan {

/// "VK_ERROR_DEVICE_LOST" and the like; the number where the name is not known.
std::string result_name(VkResult result);

/// Throws DeviceError "<what>: <name of the result>" for errors.
void check(VkResult result, std::string_view what);

}  // namespace caldera::vulkan
