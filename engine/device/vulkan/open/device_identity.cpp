#include "engine/device/vulkan/open/device_identity.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace caldera::vulkan {

std::string device_identity(VkPhysicalDevice device) {
  VkPhysicalDeviceProperties p{};
  vkGetPhysicalDeviceProperties(device, &p);
  std::string text = p.deviceName;
  std::ranges::replace_if(
      text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  text += fmt::format("-{:x}-{:x}-{:x}-", p.vendorID, p.deviceID, p.driverVersion);
  for (std::uint8_t byte : p.pipelineCacheUUID) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace caldera::vulkan
