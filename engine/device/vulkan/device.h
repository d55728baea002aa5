// A VkDevice with its one queue and its timeline. Everything that holds handles of the device shares
// ownership of it, so values may outlive the backend that made them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/device/vulkan/physical_device.h"
#include "engine/device/vulkan/vk.h"

namespace caldera::vulkan {

class LogicalDevice {
 public:
  /// Throws DeviceError when the driver refuses.
  explicit LogicalDevice(const PhysicalDevice& physical);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice&) = delete;
  LogicalDevice& operator=(const LogicalDevice&) = delete;

  VkDevice handle() const { return device_; }
  /// The device's own entry points. One table a device: see set_table_hook.
  const VolkDeviceTable& vk() const { return vk_; }
  const PhysicalDevice& physical() const { return physical_; }
  const Capabilities& capabilities() const { return physical_.capabilities; }
  std::string name() const { return physical_.info.device.to_string(); }

  /// Queues the command buffer behind all earlier ones and returns the value that the timeline reaches when
  /// it is done. Any thread. Throws DeviceError.
  std::uint64_t submit(VkCommandBuffer commands);
  std::uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  /// The value that the timeline has reached. Does not wait.
  std::uint64_t completed();
  /// Sleeps until the timeline reaches the value. Throws DeviceError when the device is lost.
  void wait(std::uint64_t value);

 private:
  void note_completed(std::uint64_t value);
  [[noreturn]] void fail(VkResult result, const char* what) const;

  const PhysicalDevice& physical_;
  VkDevice device_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};
};

using DevicePtr = std::shared_ptr<LogicalDevice>;

/// Gets the table of entry points of every device that is opened from now on, before its first use, and may
/// replace entries: how fault tests inject failures. nullptr ends it. Set it while no device is being opened.
using TableHook = void (*)(VolkDeviceTable&);
void set_table_hook(TableHook hook);

}  // namespace caldera::vulkan
