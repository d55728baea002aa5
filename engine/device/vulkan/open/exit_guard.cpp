#include "engine/device/vulkan/open/exit_guard.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

namespace caldera::vulkan {
namespace {

struct Registry {
  std::mutex mutex;
  struct Device {
    VolkDeviceTable* table;
    std::function<bool()> idle;
  };
  std::map<VkDevice, Device> open;
};

Registry& registry() {
  static auto* leaked = new Registry;  // outlives every static object
  return *leaked;
}

template <class Handle>
void VKAPI_PTR keep(VkDevice, Handle, const VkAllocationCallbacks*) {}

/// Replaces what destructors call. New work is not expected any more.
void disarm(VolkDeviceTable& table) {
  table.vkDestroyBuffer = keep<VkBuffer>;
  table.vkFreeMemory = keep<VkDeviceMemory>;
  table.vkDestroyCommandPool = keep<VkCommandPool>;
  table.vkDestroyPipeline = keep<VkPipeline>;
  table.vkDestroyPipelineCache = keep<VkPipelineCache>;
  table.vkGetPipelineCacheData = [](VkDevice, VkPipelineCache, std::size_t*, void*) { return VK_INCOMPLETE; };
  table.vkDestroyPipelineLayout = keep<VkPipelineLayout>;
  table.vkDestroyQueryPool = keep<VkQueryPool>;
  table.vkDestroySemaphore = keep<VkSemaphore>;
  table.vkDestroyDevice = [](VkDevice, const VkAllocationCallbacks*) {};
  table.vkDeviceWaitIdle = [](VkDevice) { return VK_SUCCESS; };
  table.vkWaitSemaphores = [](VkDevice, const VkSemaphoreWaitInfo*, std::uint64_t) { return VK_SUCCESS; };
  table.vkGetSemaphoreCounterValue = [](VkDevice, VkSemaphore, std::uint64_t* value) {
    *value = UINT64_MAX;  // everything is done
    return VK_SUCCESS;
  };
}

void at_exit() {
  const std::lock_guard lock(registry().mutex);
  for (const auto& [handle, device] : registry().open) {
    if (!device.idle()) device.table->vkDeviceWaitIdle(handle);
    disarm(*device.table);
  }
}

}  // namespace

void guard_exit(VkDevice device, VolkDeviceTable& table, std::function<bool()> idle) {
  const std::lock_guard lock(registry().mutex);
  // Handlers run in the reverse order of their registration: this one before those of the driver's libraries.
  [[maybe_unused]] static int registered = std::atexit(at_exit);
  registry().open.emplace(device, Registry::Device{&table, std::move(idle)});
}

void unguard_exit(VkDevice device) {
  const std::lock_guard lock(registry().mutex);
  registry().open.erase(device);
}

}  // namespace caldera::vulkan
