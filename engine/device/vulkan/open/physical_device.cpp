#include "engine/device/vulkan/open/physical_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "engine/base/error.h"
#include "engine/device/environment.h"
#include "engine/device/vulkan/open/instance.h"
#include "engine/device/vulkan/open/quirks.h"

namespace caldera::vulkan {
namespace {

int preference(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 4;
    default:
      return 3;
  }
}

const char* type_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete-gpu";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated-gpu";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual-gpu";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "software";
    default:
      return "other";
  }
}

std::vector<VkQueueFamilyProperties> queue_families(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return families;
}

/// A family without graphics where there is such a one, or with them where that is preferred.
std::optional<std::uint32_t> compute_family(const std::vector<VkQueueFamilyProperties>& families,
                                            bool with_graphics) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (((families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0) == with_graphics) return i;
    if (!found) found = i;
  }
  return found;
}

/// A family that copies and nothing else: the engines behind it need no shader cores.
std::optional<std::uint32_t> copy_family(const std::vector<VkQueueFamilyProperties>& families) {
  // Families for video can copy, too, but within limits of their own.
  constexpr VkQueueFlags kPlain =
      VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
  for (std::uint32_t i = 0; i < families.size(); ++i) {
    const VkQueueFlags flags = families[i].queueFlags;
    if ((flags & VK_QUEUE_TRANSFER_BIT) != 0 && (flags & ~kPlain) == 0) return i;
  }
  return std::nullopt;
}

/// Debugging: CALDERA_VULKAN_REPEAT.
std::size_t repetitions() {
  constexpr int kMost = 8;
  return static_cast<std::size_t>(environment_number("CALDERA_VULKAN_REPEAT", 1, 1, kMost));
}

std::vector<PhysicalDevice> repeated(const std::vector<PhysicalDevice>& devices, std::size_t times) {
  std::vector<PhysicalDevice> all;
  all.reserve(devices.size() * times);
  for (const PhysicalDevice& device : devices) all.insert(all.end(), times, device);
  return all;
}

void name_features(PhysicalDevice& device) {
  device.info.features.clear();
  device.info.missing.clear();
  for (const OptionalFeature& feature : optional_features()) {
    auto& names = device.capabilities.*feature.member ? device.info.features : device.info.missing;
    names.emplace_back(feature.name);
  }
}

std::vector<PhysicalDevice> enumerate() {
  std::vector<PhysicalDevice> devices;
  if (instance() == VK_NULL_HANDLE) return devices;
  std::uint32_t count = 0;
  if (vkEnumeratePhysicalDevices(instance(), &count, nullptr) != VK_SUCCESS) return devices;
  std::vector<VkPhysicalDevice> handles(count);
  if (vkEnumeratePhysicalDevices(instance(), &count, handles.data()) < 0) return devices;

  for (VkPhysicalDevice handle : handles) {
    PhysicalDevice device;
    device.handle = handle;
    std::string missing;
    device.capabilities = query_capabilities(handle, missing);
    if (!missing.empty()) continue;
    device.profile = profile_of(query_facts(handle));
    const std::vector<VkQueueFamilyProperties> families = queue_families(handle);
    const std::optional<std::uint32_t> family = compute_family(families, device.profile.graphics_queue);
    if (!family) continue;
    device.queue_family = *family;
    if (device.profile.copy_queue) device.copy_family = copy_family(families);
    device.timestamp_bits = families[*family].timestampValidBits;
    vkGetPhysicalDeviceMemoryProperties(handle, &device.memory);

    VkPhysicalDeviceDriverProperties driver{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &driver};
    vkGetPhysicalDeviceProperties2(handle, &properties);
    apply_profile(device.profile, device.capabilities);
    apply_quirks(properties.properties, driver, device.capabilities);
    device.timestamp_period = properties.properties.limits.timestampPeriod;
    device.info.name = properties.properties.deviceName;
    device.info.type = type_name(properties.properties.deviceType);
    device.info.driver = std::string(driver.driverName) + " " + driver.driverInfo;
    device.info.profile = describe(device.profile);
    for (std::uint32_t h = 0; h < device.memory.memoryHeapCount; ++h) {
      const VkMemoryHeap& heap = device.memory.memoryHeaps[h];
      if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
        device.info.memory_bytes = std::max<std::uint64_t>(device.info.memory_bytes, heap.size);
    }
    name_features(device);
    devices.push_back(std::move(device));
    devices.back().info.device.index =
        static_cast<std::uint8_t>(preference(properties.properties.deviceType));
  }
  // The index holds the preference until the order is known; drivers list devices in a stable order.
  std::ranges::stable_sort(devices, {}, [](const PhysicalDevice& d) { return d.info.device.index; });
  devices = repeated(devices, repetitions());
  for (std::size_t i = 0; i < devices.size(); ++i)
    devices[i].info.device = Device::vulkan(static_cast<int>(i));
  return devices;
}

}  // namespace

PhysicalDevice as_asked_for(PhysicalDevice device) {
  if (const char* const without = std::getenv("CALDERA_VULKAN_WITHOUT")) {
    leave_out(without, device.capabilities);
    name_features(device);
  }
  return device;
}

const std::vector<PhysicalDevice>& physical_devices() {
  // Leaked like the instance: backends refer to it until the very end of the process.
  static const auto* devices = new std::vector<PhysicalDevice>(enumerate());
  return *devices;
}

}  // namespace caldera::vulkan
