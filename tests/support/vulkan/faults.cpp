#include "tests/support/vulkan/faults.h"

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>

#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/open/instance.h"

namespace caldera::testing {
namespace {

// Every entry point the engine calls that can fail. Most fail for want of memory.
#define CALDERA_FAULT_SITES(X)                                      \
  X(vkCreateSemaphore, VK_ERROR_OUT_OF_HOST_MEMORY, false)          \
  X(vkCreatePipelineLayout, VK_ERROR_OUT_OF_HOST_MEMORY, false)     \
  X(vkCreatePipelineCache, VK_ERROR_OUT_OF_HOST_MEMORY, false)      \
  X(vkCreateShaderModule, VK_ERROR_OUT_OF_HOST_MEMORY, false)       \
  X(vkCreateComputePipelines, VK_ERROR_OUT_OF_DEVICE_MEMORY, false) \
  X(vkAllocateMemory, VK_ERROR_OUT_OF_DEVICE_MEMORY, false)         \
  X(vkCreateBuffer, VK_ERROR_OUT_OF_DEVICE_MEMORY, false)           \
  X(vkBindBufferMemory, VK_ERROR_OUT_OF_DEVICE_MEMORY, false)       \
  X(vkMapMemory, VK_ERROR_MEMORY_MAP_FAILED, false)                 \
  X(vkCreateQueryPool, VK_ERROR_OUT_OF_DEVICE_MEMORY, false)        \
  X(vkGetQueryPoolResults, VK_ERROR_OUT_OF_DEVICE_MEMORY, true)     \
  X(vkCreateCommandPool, VK_ERROR_OUT_OF_HOST_MEMORY, false)        \
  X(vkAllocateCommandBuffers, VK_ERROR_OUT_OF_DEVICE_MEMORY, false) \
  X(vkBeginCommandBuffer, VK_ERROR_OUT_OF_HOST_MEMORY, false)       \
  X(vkEndCommandBuffer, VK_ERROR_OUT_OF_DEVICE_MEMORY, false)       \
  X(vkQueueSubmit, VK_ERROR_OUT_OF_HOST_MEMORY, true)               \
  X(vkWaitSemaphores, VK_ERROR_OUT_OF_HOST_MEMORY, true)            \
  X(vkGetSemaphoreCounterValue, VK_ERROR_OUT_OF_HOST_MEMORY, true)  \
  X(vkGetPipelineCacheData, VK_ERROR_OUT_OF_HOST_MEMORY, false)

constexpr FaultSite kSites[] = {{"vkCreateDevice", VK_ERROR_INITIALIZATION_FAILED, false},
#define CALDERA_SITE(entry, result, reports_loss) {#entry, result, reports_loss},
                                CALDERA_FAULT_SITES(CALDERA_SITE)
#undef CALDERA_SITE
};

enum Site : std::size_t {
  kvkCreateDevice,
#define CALDERA_SITE(entry, result, reports_loss) k##entry,
  CALDERA_FAULT_SITES(CALDERA_SITE)
#undef CALDERA_SITE
      kSiteCount
};

std::size_t site_of(std::string_view entry) {
  for (std::size_t i = 0; i < std::size(kSites); ++i) {
    if (entry == kSites[i].entry) return i;
  }
  throw std::invalid_argument("no fault site " + std::string(entry));
}

/// What the loader puts at the front of a device, its queues and its command buffers: the same for all of
/// them. Layers know devices by it.
template <class Handle>
const void* key_of(Handle handle) {
  return *reinterpret_cast<const void* const*>(handle);
}

struct Order {
  std::uint64_t at = 0;    // the call that fails; 0: none
  std::uint64_t step = 0;  // and every so many after it; 0: none
  VkResult result = VK_SUCCESS;
};

struct Layer {
  /// Held while work is queued, and while a device is being lost: what is queued before the loss has run when
  /// it is seen, and nothing is queued after it. Taken before `mutex`.
  std::recursive_mutex queue;
  std::mutex mutex;
  bool installed = false;
  PFN_vkCreateDevice create_device = nullptr;
  /// Of the driver. The same for all devices: they are opened on one physical device.
  VolkDeviceTable driver{};
  std::map<const void*, VkDevice> open;
  std::set<const void*> lost;
  std::array<std::uint64_t, kSiteCount> calls{};
  std::array<Order, kSiteCount> orders{};
  std::uint64_t struck = 0;

  /// Counts a call, and says how it ends if it is not to reach the driver.
  std::optional<VkResult> strike(std::size_t site, const void* key) {
    VkDevice to_stop = VK_NULL_HANDLE;
    VkResult result = VK_SUCCESS;
    std::unique_lock queue_lock(queue, std::defer_lock);
    if (kSites[site].reports_loss) queue_lock.lock();
    {
      const std::lock_guard lock(mutex);
      const std::uint64_t n = ++calls[site];
      if (key != nullptr && lost.contains(key) && kSites[site].reports_loss) return VK_ERROR_DEVICE_LOST;
      const Order& order = orders[site];
      const bool due =
          order.at != 0 &&
          (n == order.at || (order.step != 0 && n > order.at && (n - order.at) % order.step == 0));
      if (!due) return std::nullopt;
      ++struck;
      result = order.result;
      if (result == VK_ERROR_DEVICE_LOST && key != nullptr) {
        lost.insert(key);
        to_stop = open.at(key);
      }
    }
    // A lost device runs nothing any more; the driver below, which knows of no loss, has to be made to.
    if (to_stop != VK_NULL_HANDLE) driver.vkDeviceWaitIdle(to_stop);
    return result;
  }
};

Layer& layer() {
  static auto* instance = new Layer;  // devices may be closed at the very end of the process
  return *instance;
}

template <std::size_t kSite, auto kEntry, class Function>
struct Wrapper;
template <std::size_t kSite, auto kEntry, class First, class... Rest>
struct Wrapper<kSite, kEntry, VkResult(VKAPI_PTR*)(First, Rest...)> {
  static VKAPI_ATTR VkResult VKAPI_CALL call(First first, Rest... rest) {
    std::unique_lock queue_lock(layer().queue, std::defer_lock);
    if (kSite == kvkQueueSubmit) queue_lock.lock();
    const std::optional<VkResult> failed = layer().strike(kSite, key_of(first));
    // A command buffer whose recording could not be ended is not being recorded either.
    if (failed && kSite != kvkEndCommandBuffer) return *failed;
    const VkResult result = (layer().driver.*kEntry)(first, rest...);
    return failed.value_or(result);
  }
};

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* callbacks) {
  if (device != VK_NULL_HANDLE) {
    const std::lock_guard lock(layer().mutex);
    layer().open.erase(key_of(device));
    layer().lost.erase(key_of(device));
  }
  layer().driver.vkDestroyDevice(device, callbacks);
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* callbacks, VkDevice* device) {
  if (const auto failed = layer().strike(kvkCreateDevice, nullptr)) return *failed;
  const VkResult result = layer().create_device(physical, info, callbacks, device);
  if (result == VK_SUCCESS) {
    const std::lock_guard lock(layer().mutex);
    layer().open.emplace(key_of(*device), *device);
  }
  return result;
}

void hook(VolkDeviceTable& table) {
  layer().driver = table;
#define CALDERA_SITE(entry, result, reports_loss) \
  table.entry = Wrapper<k##entry, &VolkDeviceTable::entry, decltype(VolkDeviceTable::entry)>::call;
  CALDERA_FAULT_SITES(CALDERA_SITE)
#undef CALDERA_SITE
  table.vkDestroyDevice = destroy_device;
}

}  // namespace

std::span<const FaultSite> fault_sites() { return kSites; }

void VulkanFaults::install() {
  if (layer().installed || vulkan::instance() == VK_NULL_HANDLE) return;
  layer().installed = true;
  layer().create_device = vkCreateDevice;
  vkCreateDevice = create_device;
  vulkan::set_table_hook(hook);
}

void VulkanFaults::reset() {
  const std::lock_guard lock(layer().mutex);
  layer().calls = {};
  layer().orders = {};
  layer().struck = 0;
}

void VulkanFaults::fail(const std::string& entry, std::uint64_t n, VkResult result) {
  const std::size_t site = site_of(entry);
  const std::lock_guard lock(layer().mutex);
  layer().orders[site] = {.at = layer().calls[site] + n, .step = 0, .result = result};
}

void VulkanFaults::fail_alternately(const std::string& entry, VkResult result) {
  const std::size_t site = site_of(entry);
  const std::lock_guard lock(layer().mutex);
  layer().orders[site] = {.at = layer().calls[site] + 1, .step = 2, .result = result};
}

std::uint64_t VulkanFaults::struck() {
  const std::lock_guard lock(layer().mutex);
  return layer().struck;
}

std::uint64_t VulkanFaults::calls(const std::string& entry) {
  const std::size_t site = site_of(entry);
  const std::lock_guard lock(layer().mutex);
  return layer().calls[site];
}

std::size_t VulkanFaults::open_devices() {
  const std::lock_guard lock(layer().mutex);
  return layer().open.size();
}

}  // namespace caldera::testing
