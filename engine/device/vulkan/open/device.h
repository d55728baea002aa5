// A VkDevice with its queues: one computes; another copies, where the device has one for that alone.
// Everything that holds handles of the device shares ownership of it, so values may outlive the backend that
// made them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/memory_budget.h"
#include "engine/device/vulkan/open/flight_log.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "engine/device/vulkan/open/queue.h"
#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// Names what a device is opened for.
enum class DeviceUse : std::uint8_t {
  computing,
  survey,  // to compile kernels and ask what the driver made of them (Capabilities::pipeline_statistics)
};

class LogicalDevice {
 public:
  /// Throws DeviceError when the driver refuses.
  explicit LogicalDevice(const PhysicalDevice& physical, DeviceUse use = DeviceUse::computing);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice&) = delete;
  LogicalDevice& operator=(const LogicalDevice&) = delete;

  VkDevice handle() const { return device_; }
  /// The device's own entry points. One table a device: see set_table_hook.
  const VolkDeviceTable& vk() const { return vk_; }
  const PhysicalDevice& physical() const { return physical_; }
  const Capabilities& capabilities() const { return physical_.capabilities; }
  /// Shared by all pools of memory of the device.
  MemoryBudget& memory() { return memory_; }
  bool is_survey() const { return use_ == DeviceUse::survey; }
  /// Whether pipelines are to be made so that the driver can say what it made of them.
  bool keeps_statistics() const { return is_survey() && capabilities().pipeline_statistics; }
  std::string name() const { return physical_.info.device.to_string(); }

  /// Queues the command buffers behind all earlier ones and returns the value that the timeline reaches when
  /// they are done. They see what copies have done that were waited for. Any thread. Throws DeviceError.
  std::uint64_t submit(std::span<const VkCommandBuffer> commands);
  std::uint64_t submitted() const { return compute_->submitted(); }
  /// The value that the timeline has reached. Does not wait. Of a lost device, the last that was seen.
  std::uint64_t completed();
  /// The value that it was last seen to have reached.
  std::uint64_t last_completed() const { return compute_->last_completed(); }
  /// Submits so far.
  std::uint64_t submits() const { return submits_.load(std::memory_order_relaxed); }
  /// Sleeps until the timeline reaches the value. Throws DeviceError when the device is lost.
  void wait(std::uint64_t value);

  /// Returns when nothing up to the value runs any more, also where the device is lost or cannot be waited
  /// for: what the commands use may then be destroyed.
  void settle(std::uint64_t value) noexcept;

  /// Submit and wait for copies, which have a timeline of their own where has_copy_queue(). They see what
  /// computations have done that were waited for.
  std::uint64_t submit_copy(std::span<const VkCommandBuffer> commands);
  void wait_copy(std::uint64_t value);
  void settle_copy(std::uint64_t value) noexcept;
  /// Whether copies run beside computations. Debugging: CALDERA_VULKAN_COPY_QUEUE=1 gives a device with one
  /// queue a second timeline on it, so that all of it but two queues that truly run at once, and their
  /// families' sharing of buffers, can be tried where there is no such device.
  bool has_copy_queue() const { return copy_ != nullptr; }
  std::uint32_t copy_family() const { return copies().family(); }
  /// The families whose queues touch buffers: one, or two.
  std::span<const std::uint32_t> families() const { return families_; }

  /// Whether any call has said that the device is lost. Once it is, it runs nothing any more.
  bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  /// Throws DeviceError, always with the same words, if the device is lost.
  void check_alive() const;
  /// Throws DeviceError for errors, and notes when the error is that the device is lost.
  void check(VkResult result, std::string_view what);
  /// Returns what runs, for the message of a lost device.
  FlightLog& flights() { return flights_; }

 private:
  const Queue& copies() const { return copy_ != nullptr ? *copy_ : *compute_; }
  Queue& copies() { return copy_ != nullptr ? *copy_ : *compute_; }
  std::uint64_t submit(Queue& queue, std::span<const VkCommandBuffer> commands, const QueueWait& wait);
  void wait(Queue& queue, std::uint64_t value);
  void settle(Queue& queue, std::uint64_t value) noexcept;
  void open_queues();
  void note_lost(std::string_view what);

  const PhysicalDevice physical_;
  const DeviceUse use_;
  VkDevice device_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  MemoryBudget memory_;
  std::mutex queue_mutex_;  // of all queues: submits are short
  std::unique_ptr<Queue> compute_;
  std::unique_ptr<Queue> copy_;  // null: compute_ copies, too
  std::vector<std::uint32_t> families_;
  std::atomic<std::uint64_t> submits_{0};
  std::atomic<std::uint64_t> copies_seen_{0};  // of copy_'s timeline, that a computation has waited for
  FlightLog flights_;
  std::mutex lost_mutex_;
  std::atomic<bool> lost_{false};
  std::string lost_message_;  // constant once lost_ is set
};

using DevicePtr = std::shared_ptr<LogicalDevice>;

/// Gets the table of entry points of every device that is opened from now on, before its first use, and may
/// replace entries: how fault tests inject failures. nullptr ends it. Set it while no device is being opened.
using TableHook = void (*)(VolkDeviceTable&);
void set_table_hook(TableHook hook);

}  // namespace caldera::vulkan
