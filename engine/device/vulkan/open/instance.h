// The process's VkInstance, opened on first use, and the messages of the validation layer.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// The instance, or VK_NULL_HANDLE where there is no loader, no driver, or only one older than Vulkan 1.2.
/// Never destroyed: devices may live until the end of the process, in static objects of anybody's. Throws
/// DeviceError when CALDERA_VALIDATION asks for the validation layer and it is missing. 1: core and
/// synchronisation checks; 2: also what the layer holds for bad practice, performance warnings among it.
VkInstance instance();

/// Messages of the validation layer so far, but for those that are accepted (capabilities.h).
std::uint64_t validation_messages();
/// Messages that are accepted. They are not printed.
std::uint64_t accepted_validation_messages();

}  // namespace caldera::vulkan
